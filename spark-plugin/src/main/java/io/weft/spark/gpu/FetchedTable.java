package io.weft.spark.gpu;

import io.weft.shuffle.device.DeviceSlice.DeviceRows;
import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.TableLayout;
import io.weft.tensor.Tensor;
import java.util.List;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * One or more tables of fetched blocks: on this executor's GPU, or on its host if the fetch came
 * through the host. Owns them. For one task thread.
 */
public final class FetchedTable implements AutoCloseable {
  private final TableLayout layout;
  private final boolean own;
  private final int tables;
  private final long bytes;
  private final DeviceExchange device;
  private final DeviceTable table;
  private final Tensor copy;
  private ColumnarBatch batch;

  private FetchedTable(
      TableLayout layout,
      boolean own,
      int tables,
      long bytes,
      DeviceExchange device,
      DeviceTable table,
      Tensor copy) {
    this.layout = layout;
    this.own = own;
    this.tables = tables;
    this.bytes = bytes;
    this.device = device;
    this.table = table;
    this.copy = copy;
  }

  /**
   * Wraps a table on the device and takes ownership of it.
   *
   * @param own whether it is where its map task wrote it
   */
  static FetchedTable onDevice(DeviceExchange device, DeviceRows rows, boolean own) {
    TableLayout layout = rows.layout();
    return new FetchedTable(layout, own, 1, layout.bytes(), device, lent(rows), null);
  }

  /**
   * Wraps a table that was combined from several, and takes ownership of it.
   *
   * @param of the source tables, of this executor or of another one
   */
  static FetchedTable combined(
      DeviceExchange device, DeviceTable table, List<TableLayout> of, boolean own) {
    long bytes = of.stream().mapToLong(TableLayout::bytes).sum();
    return new FetchedTable(table.layout(), own, of.size(), bytes, device, table, null);
  }

  /** Wraps rows as a table whose close frees the rows. */
  static DeviceTable lent(DeviceRows rows) {
    return DeviceTable.lent(rows.address(), rows.layout(), rows::usedUntil, rows::close);
  }

  /** Wraps a copy on the host and takes ownership of it. */
  static FetchedTable onHost(TableLayout layout, Tensor copy) {
    return new FetchedTable(layout, false, 1, layout.bytes(), null, null, copy);
  }

  /** Returns whether map tasks of this executor wrote it. */
  public boolean isLocal() {
    return own;
  }

  /** Returns whether its batch consists of {@link DeviceColumnVector}s. */
  public boolean isOnDevice() {
    return table != null;
  }

  /** Number of block tables that it consists of. */
  public int tables() {
    return tables;
  }

  /** Bytes of those tables. */
  public long bytes() {
    return bytes;
  }

  /**
   * Returns the rows as a Spark batch, valid until this is closed.
   *
   * @param schema of the table's columns
   * @throws IllegalArgumentException if the table has other columns
   */
  public ColumnarBatch batch(StructType schema) {
    if (batch == null) {
      batch = isOnDevice() ? DeviceBatch.columns(device, table, schema) : hostBatch(schema);
    }
    return batch;
  }

  private ColumnarBatch hostBatch(StructType schema) {
    TableTypes.requireColumns(layout, schema);
    return new ColumnarBatch(TableColumnVector.all(schema, copy.address(), layout), layout.rows());
  }

  /** Idempotent. */
  @Override
  public void close() {
    if (batch != null) {
      batch.close();
    }
    if (table != null) {
      table.close();
    }
    if (copy != null) {
      copy.close();
    }
  }
}
