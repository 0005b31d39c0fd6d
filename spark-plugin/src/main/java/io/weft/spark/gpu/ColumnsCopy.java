package io.weft.spark.gpu;

import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaStream;
import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * Copies columns that are anywhere on the device into the one run of a table, on one stream. The
 * copies are ordered behind the work of that stream that makes the columns. For one thread.
 */
public final class ColumnsCopy {
  private final List<Sections> columns;
  private final TableLayout layout;
  private final DeviceWork work;
  private final CudaStream stream;

  private ColumnsCopy(
      List<Sections> columns, TableLayout layout, DeviceWork work, CudaStream stream) {
    this.columns = columns;
    this.layout = layout;
    this.work = work;
    this.stream = stream;
  }

  /**
   * The memory of a column.
   *
   * @param type its type in the table, with validity if it has some
   * @param validity address of its validity bits; 0 for none
   * @param offsets address of its offsets of 4 bytes; 0 for none
   * @param data address of its values or bytes; 0 if there are none
   * @param stringBytes bytes of all its strings; 0 for others
   */
  public record Sections(
      TableColumn type, long validity, long offsets, long data, long stringBytes) {}

  /**
   * Creates a copy.
   *
   * @param work allocates the table's memory
   * @throws IllegalArgumentException if a table cannot have these columns
   */
  public static ColumnsCopy of(
      List<Sections> columns, int rows, DeviceWork work, CudaStream stream) {
    List<TableColumn> types = new ArrayList<>();
    long[] stringBytes = new long[columns.size()];
    for (int c = 0; c < columns.size(); c++) {
      types.add(columns.get(c).type());
      stringBytes[c] = columns.get(c).stringBytes();
    }
    return new ColumnsCopy(
        List.copyOf(columns), TableLayout.of(types, rows, stringBytes), work, stream);
  }

  /**
   * Enqueues the copies. The memory of the columns must stay until the table is ready.
   *
   * @param end makes the event of the work that is on the stream by then
   */
  public DeviceTable pack(Supplier<Event> end) {
    CudaMemory memory = work.take(layout.bytes());
    try {
      copy(memory.address());
      Event copied = end.get();
      memory.usedUntil(copied);
      return DeviceTable.of(memory, layout, copied);
    } catch (Throwable e) {
      giveBack(memory, e);
      throw e;
    }
  }

  private void giveBack(CudaMemory memory, Throwable cause) {
    try (memory) {
      work.keepAfterFailure("copies of a table, " + layout, stream, memory::usedUntil, cause);
    }
  }

  private void copy(long run) {
    for (int c = 0; c < columns.size(); c++) {
      Sections column = columns.get(c);
      if (column.type().nullable()) {
        put(column.validity(), run + layout.validity(c), (layout.rows() + 7L) / 8);
      }
      if (column.type().kind().isString()) {
        putOffsets(column.offsets(), run + layout.offsets(c));
      }
      put(column.data(), run + layout.data(c), layout.dataBytes(c));
    }
  }

  private void putOffsets(long from, long to) {
    if (layout.rows() > 0) {
      put(from, to, (layout.rows() + 1L) * Integer.BYTES);
    } else {
      // A column without rows may have no offsets; a table has one offset, zero.
      stream.clear(to, TableLayout.ALIGNMENT);
    }
  }

  /** Enqueues the copy of a section, and zeros up to the next one. */
  private void put(long from, long to, long bytes) {
    if (bytes > 0) {
      stream.copyOnDevice(to, from, bytes);
    }
    long rest = -bytes & (TableLayout.ALIGNMENT - 1);
    if (rest > 0) {
      stream.clear(to + bytes, rest);
    }
  }
}
