package io.weft.spark.gpu;

import io.weft.deviceblocks.DeviceRows;
import io.weft.table.DeviceTable;
import io.weft.table.TableLayout;
import io.weft.tensor.Tensor;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * A table of a block that was fetched: on this executor's GPU, or on its host where that was the
 * way to have it. Owns it. For one task thread.
 */
public final class FetchedTable implements AutoCloseable {
  private final TableLayout layout;
  private final boolean own;
  private final DeviceExchange device;
  private final DeviceRows rows;
  private final Tensor copy;
  private ColumnarBatch batch;

  private FetchedTable(
      TableLayout layout, boolean own, DeviceExchange device, DeviceRows rows, Tensor copy) {
    this.layout = layout;
    this.own = own;
    this.device = device;
    this.rows = rows;
    this.copy = copy;
  }

  /**
   * A table on the device, which it takes over.
   *
   * @param own whether it lies where its map task wrote it
   */
  static FetchedTable onDevice(DeviceExchange device, DeviceRows rows, boolean own) {
    return new FetchedTable(rows.layout(), own, device, rows, null);
  }

  /** A copy on the host, which it takes over. */
  static FetchedTable onHost(TableLayout layout, Tensor copy) {
    return new FetchedTable(layout, false, null, null, copy);
  }

  /** Whether it lies where a map task of this executor wrote it. */
  public boolean isOwn() {
    return own;
  }

  /** Whether its batch is one of {@link DeviceColumnVector}s. */
  public boolean isOnDevice() {
    return rows != null;
  }

  /** Bytes of the table. */
  public long bytes() {
    return layout.bytes();
  }

  /**
   * The rows as Spark's batch, valid until this is closed.
   *
   * @param schema of the table's columns
   * @throws IllegalArgumentException if the table has others
   */
  public ColumnarBatch batch(StructType schema) {
    if (batch == null) {
      batch = isOnDevice() ? deviceBatch(schema) : hostBatch(schema);
    }
    return batch;
  }

  private ColumnarBatch deviceBatch(StructType schema) {
    return DeviceBatch.columns(
        device, DeviceTable.lent(rows.address(), layout, rows::usedUntil, rows::close), schema);
  }

  private ColumnarBatch hostBatch(StructType schema) {
    TableTypes.requireColumns(layout, schema);
    return new ColumnarBatch(TableColumnVector.all(schema, copy.address(), layout), layout.rows());
  }

  /** Can be repeated. */
  @Override
  public void close() {
    if (batch != null) {
      batch.close();
    }
    if (rows != null) {
      rows.close();
    }
    if (copy != null) {
      copy.close();
    }
  }
}
