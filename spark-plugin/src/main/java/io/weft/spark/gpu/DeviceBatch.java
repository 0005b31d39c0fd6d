package io.weft.spark.gpu;

import io.weft.collectives.buffer.DataType;
import io.weft.device.Event;
import io.weft.table.DeviceTable;
import io.weft.table.TableLayout;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * A batch of rows as a table of this executor's GPU, with a copy on the host for who asks for one.
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
   * Spark's batch of a table, which it takes over and gives back when all columns are closed, or
   * where this fails.
   *
   * @param device of the table
   * @param schema of the table's columns, one at least
   * @throws IllegalArgumentException if the table's columns are others
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

  /** The table that a batch of Spark is, with all of its columns in their order; else nothing. */
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
   * As {@link #of(ColumnarBatch)}, where the table has the columns of a schema: those of tensors
   * may have got another shape on the way.
   */
  public static Optional<DeviceBatch> of(ColumnarBatch batch, StructType schema) {
    return of(batch).filter(whole -> TableTypes.fits(whole.table.layout(), schema));
  }

  /** Where the batch lies; read-only, and there until the batch is closed. */
  public DeviceTable table() {
    return table;
  }

  /** The columns of the table. */
  public StructType schema() {
    return schema;
  }

  /** A column on the host. */
  TableColumnVector onHost(int column) {
    if (open.get() == 0) {
      throw new IllegalStateException("a batch of " + table + " was closed");
    }
    if (copy == null) {
      copy = download();
    }
    return new TableColumnVector(
        schema.fields()[column].dataType(), copy.address(), table.layout(), column);
  }

  private Tensor download() {
    TableLayout layout = table.layout();
    Tensor host = Tensor.allocate(TensorType.of(DataType.INT8, layout.bytes()));
    if (layout.bytes() == 0) {
      return host;
    }
    boolean there = false;
    Event copied = null;
    try {
      copied = device.download(table, host.address());
      copied.await(device.deadline());
      there = true;
      return host;
    } finally {
      if (copied == null) {
        host.close();
      } else if (!there) {
        copied.whenReleased(host::close);
      }
    }
  }

  /** One of its columns was closed. */
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
