package io.weft.spark.shuffle;

import io.weft.memory.Memory;
import java.io.IOException;
import java.util.function.BooleanSupplier;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.TaskCompletionListener;
import scala.collection.Iterator;

/**
 * Where the generated code of a map stage writes its packed rows: mostly the open chunks of the map
 * output. The code asks for {@link #room}, writes a row there, and reports it by {@link #wrote}; or
 * it passes a row to {@link #write}, as it does to an {@link OfPacked}.
 *
 * <p>Rows are packed in memory of the target and returned if the stage is offered none: other code
 * reads the stage, Weft was switched off between the creation of the stage and that of the shuffle,
 * or generated code sees this class from another class loader than the writer.
 *
 * <p>For one task thread.
 */
public abstract class RowTarget {
  private static final int FIELD = Long.BYTES;
  private static final int WIDE_DECIMAL = 16;
  private static final ThreadLocal<Offer> OFFERED = new ThreadLocal<>();

  /** A target that is offered to the stage of this key. */
  private record Offer(long stage, RowTarget target) {}

  /** Records whose rows a stage with generated code writes to a target, if one is offered. */
  public interface Source {
    /**
     * The key of the stage that writes the rows to the target that it is offered, and returns them
     * if it is offered none. At least 1; 0 if the rows come from other code.
     */
    long stage();

    /** Returns the partition of a row. */
    int partition(UnsafeRow row);
  }

  /**
   * Offers this target to a stage that starts on this thread during a step.
   *
   * @param stage its key
   * @return the result of the step
   */
  final boolean offer(long stage, BooleanSupplier step) {
    OFFERED.set(new Offer(stage, this));
    try {
      return step.getAsBoolean();
    } finally {
      OFFERED.remove();
    }
  }

  /**
   * Returns the target of a stage. Generated code calls this before its first row.
   *
   * @param stage its key
   * @param fields number of columns of a row
   */
  public static RowTarget open(long stage, int fields) {
    Offer offer = OFFERED.get();
    return offer != null && offer.stage() == stage
        ? offer.target()
        : new ReturnedRows(TaskContext.get(), fields);
  }

  /**
   * Reserves room for a row.
   *
   * @param bytes of the row, a multiple of 8
   * @return its address
   * @throws IOException if there is no memory
   */
  public abstract long room(int partition, long bytes) throws IOException;

  /**
   * Takes a row that was written to its room.
   *
   * @return null, or a copy of the row that the stage must return
   */
  public abstract UnsafeRow wrote(int partition, long address, long bytes);

  /**
   * Takes a row, which is valid only during the call.
   *
   * @return null, or a copy of the row that the stage must return
   */
  public abstract UnsafeRow write(UnsafeRow row) throws IOException;

  /** Returns the bytes of a value of variable length in a row. */
  public static long padded(int bytes) {
    return (bytes + 7L) & -FIELD;
  }

  /**
   * Writes a text.
   *
   * @param row address of the row
   * @param field address of the column's field
   * @param offset of the text in the row, a multiple of 8
   * @return the offset after the text
   */
  public static long putText(long row, long field, long offset, UTF8String text) {
    int bytes = text.numBytes();
    long end = reserve(row, field, offset, bytes);
    Memory.copyFrom(text.getBaseObject(), text.getBaseOffset(), row + offset, bytes);
    return end;
  }

  /** Writes bytes, as {@link #putText}. */
  public static long putBytes(long row, long field, long offset, byte[] bytes) {
    long end = reserve(row, field, offset, bytes.length);
    Memory.copyFrom(bytes, Platform.BYTE_ARRAY_OFFSET, row + offset, bytes.length);
    return end;
  }

  private static long reserve(long row, long field, long offset, int bytes) {
    Platform.putLong(null, field, offset << Integer.SIZE | bytes);
    long end = offset + padded(bytes);
    if (end > offset + bytes) {
      Platform.putLong(null, row + end - FIELD, 0);
    }
    return end;
  }

  /**
   * Writes a decimal of more than 18 digits. It has 16 bytes, also if it is null.
   *
   * @param value of the column's scale, or null
   * @return the offset after the decimal
   */
  public static long putDecimal(long row, long field, long offset, Decimal value) {
    Platform.putLong(null, row + offset, 0);
    Platform.putLong(null, row + offset + FIELD, 0);
    int length = 0;
    if (value != null) {
      byte[] bytes = value.toJavaBigDecimal().unscaledValue().toByteArray();
      length = bytes.length;
      Memory.copyFrom(bytes, Platform.BYTE_ARRAY_OFFSET, row + offset, length);
    }
    Platform.putLong(null, field, offset << Integer.SIZE | length);
    return offset + WIDE_DECIMAL;
  }

  /** A target of packed rows, each of which it takes by {@link #write}. */
  public abstract static class OfPacked extends RowTarget {
    /**
     * Takes all rows of a map partition.
     *
     * @param rows packed rows
     * @param stage see {@link Source#stage}
     * @throws IOException if there is no memory
     */
    public final void takeAll(Iterator<InternalRow> rows, long stage) throws IOException {
      boolean more = offer(stage, rows::hasNext);
      while (more) {
        UnsafeRow unused = write((UnsafeRow) rows.next());
        more = rows.hasNext();
      }
    }

    @Override
    public final long room(int partition, long bytes) {
      throw new UnsupportedOperationException("this target takes packed rows");
    }

    @Override
    public final UnsafeRow wrote(int partition, long address, long bytes) {
      throw new UnsupportedOperationException("this target takes packed rows");
    }
  }

  /** Packs rows in memory that the end of the task frees, and returns a copy of each. */
  private static final class ReturnedRows extends RowTarget {
    private static final long LEAST_BYTES = 1024;

    private final UnsafeRow row;
    private long memory;
    private long size;

    ReturnedRows(TaskContext context, int fields) {
      row = new UnsafeRow(fields);
      context.addTaskCompletionListener((TaskCompletionListener) ended -> resize(0));
    }

    @Override
    public long room(int partition, long bytes) {
      if (bytes > size) {
        resize(Math.max(LEAST_BYTES, bytes));
      }
      return memory;
    }

    private void resize(long bytes) {
      long old = memory;
      memory = 0;
      size = 0;
      Platform.freeMemory(old);
      if (bytes > 0) {
        memory = Platform.allocateMemory(bytes);
        size = bytes;
      }
    }

    @Override
    public UnsafeRow wrote(int partition, long address, long bytes) {
      row.pointTo(null, address, Math.toIntExact(bytes));
      return row.copy();
    }

    @Override
    public UnsafeRow write(UnsafeRow packed) {
      return packed.copy();
    }
  }
}
