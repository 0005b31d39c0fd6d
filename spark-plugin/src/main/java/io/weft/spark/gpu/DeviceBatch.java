package io.weft.spark.gpu;

import io.weft.collectives.DataType;
import io.weft.device.Event;
import io.weft.memory.Memory;
import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.TableLayout;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * A batch of rows as a table on this executor's GPU, with a copy on the host if one is requested.
 * Owns both until all of its columns are closed. For one thread at a time.
 */
public final class DeviceBatch {
  private final DeviceExchange device;
  private final DeviceTable table;
  private final StructType schema;
  private final AtomicInteger open;
  private Tensor copy;

  private DeviceBatch(DeviceExchange device, DeviceTable table, StructType schema) {
    this.device = device;
    this.table = table;
    this.schema = schema;
    this.open = new AtomicInteger(schema.size());
  }

  /**
   * Makes a Spark batch of a table. Takes ownership of the table and frees it when all columns are
   * closed, or when this call fails.
   *
   * @param device of the table
   * @param schema of the table's columns, one at least
   * @throws IllegalArgumentException if the table has other columns
   */
  public static ColumnarBatch columns(DeviceExchange device, DeviceTable table, StructType schema) {
    try {
      TableTypes.requireColumns(table.layout(), schema);
    } catch (IllegalArgumentException e) {
      table.close();
      throw e;
    }
    DeviceBatch batch = new DeviceBatch(device, table, schema);
    ColumnVector[] columns = new ColumnVector[schema.size()];
    for (int c = 0; c < columns.length; c++) {
      columns[c] = new DeviceColumnVector(batch, c, schema.fields()[c].dataType());
    }
    return new ColumnarBatch(columns, table.rows());
  }

  /**
   * Returns the table of a Spark batch that has all of its columns in their order; empty for any
   * other batch.
   */
  public static Optional<DeviceBatch> of(ColumnarBatch batch) {
    if (batch.numCols() == 0 || !(batch.column(0) instanceof DeviceColumnVector first)) {
      return Optional.empty();
    }
    DeviceBatch whole = first.batch();
    boolean same = batch.numCols() == whole.schema.size() && batch.numRows() == whole.table.rows();
    for (int c = 0; same && c < batch.numCols(); c++) {
      same =
          batch.column(c) instanceof DeviceColumnVector column
              && column.batch() == whole
              && column.column() == c;
    }
    return same ? Optional.of(whole) : Optional.empty();
  }

  /**
   * Like {@link #of(ColumnarBatch)}, if the table has the columns of a schema: the shape of tensors
   * may have changed since the batch was made.
   */
  public static Optional<DeviceBatch> of(ColumnarBatch batch, StructType schema) {
    return of(batch).filter(whole -> TableTypes.fits(whole.table.layout(), schema));
  }

  /** The table of the batch; read-only, valid until the batch is closed. */
  public DeviceTable table() {
    return table;
  }

  /** The schema of the table's columns. */
  public StructType schema() {
    return schema;
  }

  /** Returns a column on the host. */
  TableColumnVector onHost(int column) {
    if (open.get() == 0) {
      throw new IllegalStateException("a batch of " + table + " was closed");
    }
    if (copy == null) {
      copy = download(0, table.layout().bytes());
    }
    return new TableColumnVector(
        schema.fields()[column].dataType(), copy.address(), table.layout(), column);
  }

  /**
   * Returns whether a column has nulls. Copies only its validity bits to the host, if it has some.
   */
  public boolean hasNulls(int column) {
    TableLayout layout = table.layout();
    if (!layout.columns().get(column).nullable()) {
      return false;
    }
    int rows = layout.rows();
    try (Tensor bits = download(layout.validity(column), (rows + 7L) / 8)) {
      for (int row = 0; row < rows; row++) {
        if ((Memory.getByte(bits.address() + row / 8) >> row % 8 & 1) == 0) {
          return true;
        }
      }
    }
    return false;
  }

  private Tensor download(long offset, long bytes) {
    Tensor host = Tensor.allocate(TensorType.of(DataType.INT8, bytes));
    if (bytes == 0) {
      return host;
    }
    boolean complete = false;
    Event copied = null;
    try {
      copied = device.download(table, offset, bytes, host.address());
      copied.await(device.deadline());
      complete = true;
      return host;
    } finally {
      if (copied == null) {
        host.close();
      } else if (!complete) {
        copied.whenReleased(host::close);
      }
    }
  }

  /** Counts a closed column. */
  void release() {
    if (open.decrementAndGet() == 0) {
      table.close();
      if (copy != null) {
        copy.close();
        copy = null;
      }
    }
  }
}
