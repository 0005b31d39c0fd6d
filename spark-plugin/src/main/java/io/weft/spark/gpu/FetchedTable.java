package io.weft.spark.gpu;

import io.weft.deviceblocks.DeviceRows;
import io.weft.table.DeviceTable;
import io.weft.table.TableLayout;
import io.weft.tensor.Tensor;
import java.util.List;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * A table of a block that was fetched, or of several: on this executor's GPU, or on its host where
 * that was the way to have it. Owns it. For one task thread.
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
   * A table on the device, which it takes over.
   *
   * @param own whether it lies where its map task wrote it
   */
  static FetchedTable onDevice(DeviceExchange device, DeviceRows rows, boolean own) {
    TableLayout layout = rows.layout();
    return new FetchedTable(layout, own, 1, layout.bytes(), device, lent(rows), null);
  }

  /**
   * Tables that were put together, which it takes over.
   *
   * @param of what they were, of this executor or of another one
   */
  static FetchedTable together(
      DeviceExchange device, DeviceTable table, List<TableLayout> of, boolean own) {
    long bytes = of.stream().mapToLong(TableLayout::bytes).sum();
    return new FetchedTable(table.layout(), own, of.size(), bytes, device, table, null);
  }

  /** Rows as a table that gives them back. */
  static DeviceTable lent(DeviceRows rows) {
    return DeviceTable.lent(rows.address(), rows.layout(), rows::usedUntil, rows::close);
  }

  /** A copy on the host, which it takes over. */
  static FetchedTable onHost(TableLayout layout, Tensor copy) {
    return new FetchedTable(layout, false, 1, layout.bytes(), null, null, copy);
  }

  /** Whether map tasks of this executor wrote it. */
  public boolean isOwn() {
    return own;
  }

  /** Whether its batch is one of {@link DeviceColumnVector}s. */
  public boolean isOnDevice() {
    return table != null;
  }

  /** Tables of blocks that it is made of. */
  public int tables() {
    return tables;
  }

  /** Bytes of those. */
  public long bytes() {
    return bytes;
  }

  /**
   * The rows as Spark's batch, valid until this is closed.
   *
   * @param schema of the table's columns
   * @throws IllegalArgumentException if the table has others
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

  /** Can be repeated. */
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
