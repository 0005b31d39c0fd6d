package io.weft.spark.columns;

import io.weft.spark.columns.ChunkFormat.ChunkCursor;
import io.weft.spark.columns.ColumnLayout.StorageForm;
import java.util.List;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column vector over the buffers of a chunk or a builder. It owns no memory, and closing it does
 * nothing. Its values are valid as long as the owner keeps the buffers. Later reads, or reads
 * beyond its rows, return foreign memory or crash the process.
 *
 * <p>A vector is reused for many batches. Not thread-safe.
 */
public final class BlockColumnVector extends ColumnVector {
  private static final BlockColumnVector[] NONE = new BlockColumnVector[0];

  private final StorageForm form;
  private final BlockColumnVector[] children;
  private int nulls;
  private long validity;
  private long offsets;
  private long values;

  BlockColumnVector(ColumnLayout layout) {
    super(layout.type());
    form = layout.form();
    children = layout.children().isEmpty() ? NONE : of(layout.children());
  }

  /** Sets the buffers of this node, without its children. The address of a missing buffer is 0. */
  void point(int nulls, long validity, long offsets, long values) {
    this.nulls = nulls;
    this.validity = validity;
    this.offsets = offsets;
    this.values = values;
  }

  /**
   * Sets the buffers of this node and its children to the next nodes of a batch.
   *
   * @param count values of this node
   */
  void load(ChunkCursor cursor, int count) {
    cursor.nextNode();
    int foundNulls = cursor.nulls();
    int extent = cursor.extent();
    long foundValidity =
        form == StorageForm.NULL || foundNulls == 0
            ? 0
            : cursor.buffer(ChunkFormat.bitBytes(count));
    switch (form) {
      case NULL -> point(count, 0, 0, 0);
      case BOOLEAN ->
          point(foundNulls, foundValidity, 0, cursor.buffer(ChunkFormat.bitBytes(count)));
      case STRING, BINARY, OPAQUE -> {
        long ends = cursor.offsets(count, extent);
        point(foundNulls, foundValidity, ends, cursor.buffer(extent));
      }
      case LIST, MAP -> {
        point(foundNulls, foundValidity, cursor.offsets(count, extent), 0);
        loadChildren(cursor, extent);
      }
      case STRUCT, INTERVAL, VARIANT -> {
        point(foundNulls, foundValidity, 0, 0);
        loadChildren(cursor, count);
      }
      default -> point(foundNulls, foundValidity, 0, cursor.buffer((long) form.width() * count));
    }
  }

  private void loadChildren(ChunkCursor cursor, int count) {
    for (BlockColumnVector child : children) {
      child.load(cursor, count);
    }
  }

  StorageForm form() {
    return form;
  }

  /** Address of the validity bitmap; undefined without nulls. */
  public long validity() {
    return validity;
  }

  /** Address of the 32-bit offsets of strings, binary values, lists and maps. */
  public long offsets() {
    return offsets;
  }

  /** Address of the values, bits or bytes. */
  public long values() {
    return values;
  }

  /** Offset of a row's value, in bytes or elements. */
  public int offset(int row) {
    return Platform.getInt(null, offsets + 4L * row);
  }

  /** Does nothing. The memory belongs to the reader of the batch. */
  @Override
  public void close() {}

  @Override
  public boolean hasNull() {
    return nulls > 0;
  }

  @Override
  public int numNulls() {
    return nulls;
  }

  @Override
  public boolean isNullAt(int row) {
    return nulls > 0 && (validity == 0 || !Bits.get(validity, row));
  }

  @Override
  public boolean getBoolean(int row) {
    return Bits.get(values, row);
  }

  @Override
  public byte getByte(int row) {
    return Platform.getByte(null, values + row);
  }

  @Override
  public byte[] getBytes(int row, int count) {
    byte[] copy = new byte[count];
    Platform.copyMemory(null, values + row, copy, Platform.BYTE_ARRAY_OFFSET, count);
    return copy;
  }

  @Override
  public short getShort(int row) {
    return Platform.getShort(null, values + 2L * row);
  }

  @Override
  public short[] getShorts(int row, int count) {
    short[] copy = new short[count];
    Platform.copyMemory(null, values + 2L * row, copy, Platform.SHORT_ARRAY_OFFSET, 2L * count);
    return copy;
  }

  @Override
  public int getInt(int row) {
    return Platform.getInt(null, values + 4L * row);
  }

  @Override
  public int[] getInts(int row, int count) {
    int[] copy = new int[count];
    Platform.copyMemory(null, values + 4L * row, copy, Platform.INT_ARRAY_OFFSET, 4L * count);
    return copy;
  }

  @Override
  public long getLong(int row) {
    return Platform.getLong(null, values + 8L * row);
  }

  @Override
  public long[] getLongs(int row, int count) {
    long[] copy = new long[count];
    Platform.copyMemory(null, values + 8L * row, copy, Platform.LONG_ARRAY_OFFSET, 8L * count);
    return copy;
  }

  @Override
  public float getFloat(int row) {
    return Platform.getFloat(null, values + 4L * row);
  }

  @Override
  public float[] getFloats(int row, int count) {
    float[] copy = new float[count];
    Platform.copyMemory(null, values + 4L * row, copy, Platform.FLOAT_ARRAY_OFFSET, 4L * count);
    return copy;
  }

  @Override
  public double getDouble(int row) {
    return Platform.getDouble(null, values + 8L * row);
  }

  @Override
  public double[] getDoubles(int row, int count) {
    double[] copy = new double[count];
    Platform.copyMemory(null, values + 8L * row, copy, Platform.DOUBLE_ARRAY_OFFSET, 8L * count);
    return copy;
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    if (isNullAt(row)) {
      return null;
    }
    return form == StorageForm.DECIMAL128
        ? Decimal128.get(null, values + 16L * row, precision, scale)
        : Decimal.createUnsafe(getLong(row), precision, scale);
  }

  /** Returns a row's string, which refers to the chunk; null if the value is null. */
  @Override
  public UTF8String getUTF8String(int row) {
    if (isNullAt(row)) {
      return null;
    }
    int start = offset(row);
    return UTF8String.fromAddress(null, values + start, offset(row + 1) - start);
  }

  @Override
  public byte[] getBinary(int row) {
    if (isNullAt(row)) {
      return null;
    }
    int start = offset(row);
    return getBytes(start, offset(row + 1) - start);
  }

  @Override
  public ColumnarArray getArray(int row) {
    if (isNullAt(row)) {
      return null;
    }
    int start = offset(row);
    return new ColumnarArray(children[0], start, offset(row + 1) - start);
  }

  @Override
  public ColumnarMap getMap(int row) {
    if (isNullAt(row)) {
      return null;
    }
    int start = offset(row);
    return new ColumnarMap(children[0], children[1], start, offset(row + 1) - start);
  }

  /** A list's elements; a map's keys and values; the fields of a struct. */
  @Override
  public BlockColumnVector getChild(int ordinal) {
    return children[ordinal];
  }

  /** All children; not a copy. */
  BlockColumnVector[] children() {
    return children;
  }

  /** Creates vectors for the columns of a schema, without buffers. */
  static BlockColumnVector[] of(ColumnarSchema schema) {
    return of(schema.columns());
  }

  /** A loop, because it runs for each column, and the JIT compiler takes long for streams. */
  private static BlockColumnVector[] of(List<ColumnLayout> columns) {
    BlockColumnVector[] vectors = new BlockColumnVector[columns.size()];
    for (int i = 0; i < vectors.length; i++) {
      vectors[i] = new BlockColumnVector(columns.get(i));
    }
    return vectors;
  }
}
