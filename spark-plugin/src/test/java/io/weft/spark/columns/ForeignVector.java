package io.weft.spark.columns;

import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.UTF8String;

/** A vector of another library, accessible only by Spark's getters. */
final class ForeignVector extends ColumnVector {
  private final ColumnVector values;

  ForeignVector(ColumnVector values) {
    super(values.dataType());
    this.values = values;
  }

  @Override
  public void close() {
    values.close();
  }

  @Override
  public boolean hasNull() {
    return values.hasNull();
  }

  @Override
  public int numNulls() {
    return values.numNulls();
  }

  @Override
  public boolean isNullAt(int row) {
    return values.isNullAt(row);
  }

  private void requireValue(int row) {
    if (values.isNullAt(row)) {
      throw new AssertionError("The value of a null was read");
    }
  }

  @Override
  public boolean getBoolean(int row) {
    requireValue(row);
    return values.getBoolean(row);
  }

  @Override
  public byte getByte(int row) {
    requireValue(row);
    return values.getByte(row);
  }

  @Override
  public short getShort(int row) {
    requireValue(row);
    return values.getShort(row);
  }

  @Override
  public int getInt(int row) {
    requireValue(row);
    return values.getInt(row);
  }

  @Override
  public long getLong(int row) {
    requireValue(row);
    return values.getLong(row);
  }

  @Override
  public float getFloat(int row) {
    requireValue(row);
    return values.getFloat(row);
  }

  @Override
  public double getDouble(int row) {
    requireValue(row);
    return values.getDouble(row);
  }

  @Override
  public ColumnarArray getArray(int row) {
    return values.getArray(row);
  }

  @Override
  public ColumnarMap getMap(int row) {
    return values.getMap(row);
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    return values.getDecimal(row, precision, scale);
  }

  @Override
  public UTF8String getUTF8String(int row) {
    return values.getUTF8String(row);
  }

  @Override
  public byte[] getBinary(int row) {
    return values.getBinary(row);
  }

  @Override
  public CalendarInterval getInterval(int row) {
    return values.getInterval(row);
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    return new ForeignVector(values.getChild(ordinal));
  }
}
