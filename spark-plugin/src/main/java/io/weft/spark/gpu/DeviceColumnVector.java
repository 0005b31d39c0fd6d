package io.weft.spark.gpu;

import io.weft.spark.columns.ContiguousVector;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column of a batch on this executor's GPU. Code that works on the device uses the table of its
 * {@link #batch()}. Code that reads values or nulls works too: the first such call copies the whole
 * table to the host in one piece, and reads go there.
 *
 * <p>The table is freed when all columns of the batch are closed. For one thread at a time.
 */
public final class DeviceColumnVector extends ColumnVector implements ContiguousVector {
  private final DeviceBatch batch;
  private final int column;
  private final AtomicBoolean closed = new AtomicBoolean();
  private TableColumnVector onHost;

  DeviceColumnVector(DeviceBatch batch, int column, DataType type) {
    super(type);
    this.batch = batch;
    this.column = column;
  }

  /** Returns the batch of this column. */
  public DeviceBatch batch() {
    return batch;
  }

  /** The column's index in the batch's table, from 0. */
  public int column() {
    return column;
  }

  private TableColumnVector host() {
    if (onHost == null) {
      onHost = batch.onHost(column);
    }
    return onHost;
  }

  /** Closes the column; the last column of a batch frees the table. Idempotent. */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      onHost = null;
      batch.release();
    }
  }

  @Override
  public boolean hasNull() {
    return mayHaveNulls() && host().hasNull();
  }

  @Override
  public int numNulls() {
    return mayHaveNulls() ? host().numNulls() : 0;
  }

  /** Reads the table's metadata only, not its data. */
  private boolean mayHaveNulls() {
    return batch.table().layout().columns().get(column).nullable();
  }

  @Override
  public boolean isNullAt(int row) {
    return host().isNullAt(row);
  }

  @Override
  public boolean getBoolean(int row) {
    return host().getBoolean(row);
  }

  @Override
  public byte getByte(int row) {
    return host().getByte(row);
  }

  @Override
  public short getShort(int row) {
    return host().getShort(row);
  }

  @Override
  public int getInt(int row) {
    return host().getInt(row);
  }

  @Override
  public long getLong(int row) {
    return host().getLong(row);
  }

  @Override
  public float getFloat(int row) {
    return host().getFloat(row);
  }

  @Override
  public double getDouble(int row) {
    return host().getDouble(row);
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    return host().getDecimal(row, precision, scale);
  }

  @Override
  public UTF8String getUTF8String(int row) {
    return host().getUTF8String(row);
  }

  @Override
  public byte[] getBinary(int row) {
    return host().getBinary(row);
  }

  @Override
  public long values(int width) {
    return host().values(width);
  }

  @Override
  public boolean hasTensors() {
    return batch.table().layout().columns().get(column).tensor() != null;
  }

  @Override
  public long elements(int row) {
    return host().elements(row);
  }

  @Override
  public int elementsOfValue() {
    return host().elementsOfValue();
  }

  @Override
  public ColumnarArray getArray(int row) {
    return host().getArray(row);
  }

  @Override
  public ColumnarMap getMap(int row) {
    return host().getMap(row);
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    return host().getChild(ordinal);
  }
}
