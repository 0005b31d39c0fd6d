package io.weft.spark.gpu;

import io.weft.shuffle.device.ColumnKind;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import io.weft.spark.columns.ContiguousVector;
import io.weft.spark.columns.Decimal128;
import java.util.Objects;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column of a table that was copied to the host, read in place. It owns no memory: closing it
 * does nothing, and its creator decides how long it may be read. Rows are counted from 0 and not
 * checked. Thread-safe.
 */
final class TableColumnVector extends ColumnVector implements ContiguousVector {
  private final TableColumn column;
  private final int rows;
  private final long validity;
  private final long offsets;
  private final long data;

  /** Bytes of all strings. */
  private final long stringBytes;

  /** Counted once, because a batch that is appended in pieces asks for each. Negative before. */
  private int nulls = -1;

  /**
   * Views the column of a table.
   *
   * @param start address of the table's run on the host
   */
  TableColumnVector(DataType type, long start, TableLayout layout, int column) {
    super(type);
    TableColumn made = layout.columns().get(Objects.checkIndex(column, layout.columns().size()));
    this.column = made;
    this.rows = layout.rows();
    this.validity = made.nullable() ? start + layout.validity(column) : 0;
    this.offsets = made.kind().isString() ? start + layout.offsets(column) : 0;
    this.data = start + layout.data(column);
    this.stringBytes = layout.dataBytes(column);
  }

  /** The elements of tensors from an address on. */
  private TableColumnVector(DataType element, long data) {
    super(element);
    this.column = TableColumn.of(TableTypes.kind(element).orElseThrow(), false);
    this.rows = 0;
    this.validity = 0;
    this.offsets = 0;
    this.data = data;
    this.stringBytes = 0;
  }

  /** Views all columns of a table. */
  static ColumnVector[] all(StructType schema, long start, TableLayout layout) {
    ColumnVector[] vectors = new ColumnVector[schema.size()];
    for (int c = 0; c < vectors.length; c++) {
      vectors[c] = new TableColumnVector(schema.fields()[c].dataType(), start, layout, c);
    }
    return vectors;
  }

  @Override
  public void close() {}

  @Override
  public boolean hasNull() {
    return numNulls() > 0;
  }

  @Override
  public int numNulls() {
    int counted = nulls; // Read once, because another thread may write it.
    if (counted < 0) {
      counted = 0;
      for (int row = 0; validity != 0 && row < rows; row++) {
        counted += isNullAt(row) ? 1 : 0;
      }
      nulls = counted;
    }
    return counted;
  }

  @Override
  public boolean isNullAt(int row) {
    return validity != 0 && (Platform.getByte(null, validity + row / 8) >> row % 8 & 1) == 0;
  }

  @Override
  public boolean getBoolean(int row) {
    return Platform.getByte(null, data + row) != 0;
  }

  @Override
  public byte getByte(int row) {
    return Platform.getByte(null, data + row);
  }

  @Override
  public short getShort(int row) {
    return Platform.getShort(null, data + 2L * row);
  }

  @Override
  public int getInt(int row) {
    return Platform.getInt(null, data + 4L * row);
  }

  @Override
  public long getLong(int row) {
    return Platform.getLong(null, data + 8L * row);
  }

  @Override
  public float getFloat(int row) {
    return Platform.getFloat(null, data + 4L * row);
  }

  @Override
  public double getDouble(int row) {
    return Platform.getDouble(null, data + 8L * row);
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    if (isNullAt(row)) {
      return null;
    }
    return column.kind() == ColumnKind.DECIMAL128
        ? Decimal128.get(null, data + 16L * row, precision, scale)
        : Decimal.createUnsafe(getLong(row), precision, scale);
  }

  /** The string at a row, which points into the table; null if it is null. */
  @Override
  public UTF8String getUTF8String(int row) {
    return isNullAt(row) ? null : UTF8String.fromAddress(null, data + start(row), length(row));
  }

  @Override
  public byte[] getBinary(int row) {
    if (isNullAt(row)) {
      return null;
    }
    byte[] copy = new byte[length(row)];
    Platform.copyMemory(
        null, data + start(row), copy, Platform.BYTE_ARRAY_OFFSET, (long) copy.length);
    return copy;
  }

  /** Address of the bytes of a string, or of a tensor. */
  private long start(int row) {
    return offsets == 0 ? column.width() * row : Platform.getInt(null, offsets + 4L * row);
  }

  /** The length of a string, whose place is checked, or of a tensor. */
  private int length(int row) {
    if (offsets == 0) {
      return (int) column.width();
    }
    long from = start(row);
    long to = start(row + 1);
    if (from < 0 || to < from || to > stringBytes) {
      throw new IllegalStateException(
          ("the string of row %d is at bytes %d to %d of %d: the function that made this batch gave"
                  + " wrong offsets")
              .formatted(row, from, to, stringBytes));
    }
    return (int) (to - from);
  }

  @Override
  public long values(int width) {
    boolean isPlain =
        offsets == 0 && column.tensor() == null && column.kind() != ColumnKind.BOOLEAN;
    return isPlain && column.width() == width ? data : 0;
  }

  @Override
  public boolean hasTensors() {
    return column.tensor() != null;
  }

  @Override
  public long elements(int row) {
    return data + start(row);
  }

  @Override
  public int elementsOfValue() {
    return (int) column.tensor().elements();
  }

  /** The elements of a tensor, in place; null if it is null. */
  @Override
  public ColumnarArray getArray(int row) {
    if (isNullAt(row)) {
      return null;
    }
    DataType element = ((ArrayType) dataType()).elementType();
    return new ColumnarArray(new TableColumnVector(element, elements(row)), 0, elementsOfValue());
  }

  @Override
  public ColumnarMap getMap(int row) {
    throw new UnsupportedOperationException("a GPU table has no maps");
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    throw new UnsupportedOperationException("a GPU table has no nested columns");
  }
}
