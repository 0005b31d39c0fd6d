package io.weft.spark.gpu.jcuda;

import io.weft.device.Event;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaStream;
import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import io.weft.spark.gpu.ColumnsCopy;
import io.weft.spark.gpu.ColumnsCopy.Sections;
import io.weft.spark.gpu.DeviceFunction;
import io.weft.spark.gpu.DeviceWork;
import io.weft.spark.gpu.TableTypes;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * One call of a function with JCuda.
 *
 * @param schema of the batch
 */
record JcudaCall(StructType schema, JcudaFunction function) {
  /**
   * Makes a Weft table from a batch.
   *
   * @throws IllegalArgumentException if the function's table is not as declared
   * @throws Exception which fails the task
   */
  DeviceTable of(DeviceTable batch, DeviceWork work) throws Exception {
    TableTypes.requireColumns(batch.layout(), schema);
    CudaStream stream = work.lane().stream();
    JcudaLibrary.load();
    CudaLane.order(batch.ready(), stream, work.deadline());
    JcudaWork given = new JcudaWork(work);
    try {
      stream.device().use();
      JcudaTable made = function.apply(JcudaTable.view(batch), given);
      DeviceTable packed = new Result(batch, work, given).copyOf(made).pack(() -> end(batch, work));
      keep(batch, given, packed);
      return packed;
    } catch (Throwable e) {
      // A failed call may have enqueued work that uses the memory.
      work.keepAfterFailure(
          "JCuda work on a batch",
          stream,
          event -> {
            batch.usedUntil(event);
            given.usedUntil(event);
          },
          e);
      throw e;
    } finally {
      given.end();
      stream.device().use(); // The function may have made another context current.
    }
  }

  /** Ends with all work on the stream; fails also if the work that makes the batch fails. */
  private static Event end(DeviceTable batch, DeviceWork work) {
    return work.lane().submit("a table made with JCuda", () -> {}, batch.ready());
  }

  private static void keep(DeviceTable batch, JcudaWork given, DeviceTable packed) {
    try {
      batch.usedUntil(packed.ready());
      given.usedUntil(packed.ready());
    } catch (Throwable e) {
      packed.close();
      throw e;
    }
  }

  /** Verifies the function's table, and finds the memory of its columns. */
  private record Result(DeviceTable batch, DeviceWork work, JcudaWork given) {
    ColumnsCopy copyOf(JcudaTable made) {
      if (made == null) {
        throw new IllegalStateException("a function on batches with JCuda returned no table");
      }
      StructType declared = work.schema();
      if (made.columns().size() != declared.size()) {
        throw new IllegalArgumentException(
            "a function with JCuda made a table of %d columns; declared are %d: %s"
                .formatted(made.columns().size(), declared.size(), declared.simpleString()));
      }
      if (made.rows() < 0 || made.rows() > TableLayout.MAX_ROWS) {
        throw new IllegalArgumentException(
            "a function with JCuda made a table of %d rows; a batch has 0 to %d"
                .formatted(made.rows(), TableLayout.MAX_ROWS));
      }
      List<Sections> columns = new ArrayList<>();
      for (int c = 0; c < declared.size(); c++) {
        columns.add(sections(made.column(c), declared.fields()[c], made.rows()));
      }
      return ColumnsCopy.of(columns, made.rows(), work, work.lane().stream());
    }

    private Sections sections(JcudaColumn column, StructField field, int rows) {
      boolean nullable = column.validity() != null;
      if (nullable && !field.nullable()) {
        throw wrong(field, "it has validity bits, and is declared without nulls");
      }
      TableColumn type = TableTypes.column(field, nullable).orElseThrow();
      boolean strings = type.kind().isString();
      if (strings != (column.offsets() != null) && !(strings && rows == 0)) {
        throw wrong(field, strings ? "it has no offsets" : "it has offsets");
      }
      if (strings && rows == 0 && column.bytes() != 0) {
        throw wrong(field, column.bytes() + " bytes of strings without rows");
      }
      if (strings && column.bytes() > Integer.MAX_VALUE) {
        throw wrong(field, column.bytes() + " bytes of strings are too many: make fewer rows");
      }
      if (!strings && column.bytes() != rows * type.width()) {
        throw wrong(
            field,
            "%d rows take %d bytes, not %d".formatted(rows, rows * type.width(), column.bytes()));
      }
      long validity = JcudaPointers.address(column.validity());
      long offsets = JcudaPointers.address(column.offsets());
      long data = JcudaPointers.address(column.data());
      require(field, "validity bits", validity, nullable ? (rows + 7L) / 8 : 0);
      require(field, "offsets", offsets, strings && rows > 0 ? (rows + 1L) * Integer.BYTES : 0);
      require(field, "data", data, column.bytes());
      return new Sections(type, validity, offsets, data, strings ? column.bytes() : 0);
    }

    private void require(StructField field, String what, long address, long bytes) {
      boolean known =
          bytes == 0
              || given.hasTaken(address, bytes)
              || JcudaWork.within(address, bytes, batch.address(), batch.bytes());
      if (!known) {
        throw wrong(
            field,
            "its %s, %d bytes at 0x%x, are neither in the batch nor in memory of JcudaWork.take"
                .formatted(what, bytes, address));
      }
    }

    private static IllegalArgumentException wrong(StructField field, String what) {
      return new IllegalArgumentException(
          "column %s (%s) of a table that a function with JCuda made: %s"
              .formatted(field.name(), field.dataType().simpleString(), what));
    }
  }

  /**
   * Adapts a function with JCuda to a function on batches. No type of JCuda occurs in its methods'
   * signatures, so executors without JCuda can load it and report what is missing. Immutable; each
   * call is for one thread.
   */
  static final class JcudaDeviceFunction implements DeviceFunction {
    private static final long serialVersionUID = 1;

    private final StructType schema;
    private final JcudaFunction function;

    JcudaDeviceFunction(StructType schema, JcudaFunction function) {
      this.schema = schema;
      this.function = function;
    }

    @Override
    public DeviceTable apply(DeviceTable batch, DeviceWork work) throws Exception {
      return new JcudaCall(schema, function).of(batch, work);
    }

    /** For plans. */
    @Override
    public String toString() {
      return "JCuda " + function;
    }

    /** The class of the program's function may have types of JCuda in signatures. */
    private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
      JcudaLibrary.requireClasses("this executor");
      in.defaultReadObject();
    }
  }
}
