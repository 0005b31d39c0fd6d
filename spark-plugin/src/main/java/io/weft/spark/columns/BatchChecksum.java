package io.weft.spark.columns;

import io.weft.spark.columns.BytesSource.FixedSource;
import io.weft.spark.columns.ColumnLayout.StorageForm;
import io.weft.spark.columns.RepeatedBuilder.RunSource;
import io.weft.spark.compat.OpaqueTypes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.unsafe.types.VariantVal;

/**
 * The checksum of the rows that a map task of the columns route writes, with their partitions. The
 * order of rows does not change it. The driver compares it between attempts of the same map task to
 * detect other rows.
 *
 * <p>A row's hash is computed column by column and depends on values only, not on how a vector
 * stores them. It is not the hash of Spark's packed row, which would need a conversion. A map
 * output therefore takes either batches or rows, never both.
 *
 * <p>For one task thread.
 */
public final class BatchChecksum {
  private static final long PRIME_1 = 0x9E3779B185EBCA87L;
  private static final long PRIME_2 = 0xC2B2AE3D27D4EB4FL;
  private static final long PRIME_3 = 0x165667B19E3779F9L;
  private static final long NULL = 0x27D4EB2F165667C5L;

  private final List<ColumnUpdate> columns = new ArrayList<>();
  private long[] hashes = new long[0];
  private long xor;
  private long sum;

  /**
   * Creates the checksum of no rows.
   *
   * @param schema of all batches and rows
   */
  public BatchChecksum(StructType schema) {
    List<ColumnLayout> layouts = ColumnarSchema.of(schema).columns();
    for (int i = 0; i < layouts.size(); i++) {
      columns.add(column(i, layouts.get(i)));
    }
  }

  private static ColumnUpdate column(int ordinal, ColumnLayout layout) {
    return switch (layout.form()) {
      case NULL -> (batch, hashes) -> {};
      case BOOLEAN -> ofVector(ordinal, BatchChecksum::booleans);
      case STRING, BINARY, OPAQUE -> ofVector(ordinal, new Bytes(layout));
      case LIST ->
          isNumber(layout.children().get(0))
              ? ofVector(ordinal, new Numbers(layout))
              : new Nested(ordinal, layout);
      case MAP, STRUCT, INTERVAL, VARIANT -> new Nested(ordinal, layout);
      default -> ofVector(ordinal, new Fixed(layout));
    };
  }

  private static ColumnUpdate ofVector(int ordinal, VectorUpdate hash) {
    return (batch, hashes) -> hash.update(batch.column(ordinal), batch.numRows(), hashes);
  }

  private static boolean isNumber(ColumnLayout layout) {
    return switch (layout.form()) {
      case BYTE, SHORT, INT, LONG, FLOAT, DOUBLE -> true;
      default -> false;
    };
  }

  /**
   * Adds the rows of a batch.
   *
   * @param partitionIds the partition of each row; may be longer than the batch
   */
  public void add(ColumnarBatch batch, int[] partitionIds) {
    int rows = batch.numRows();
    if (hashes.length < rows) {
      hashes = new long[Math.max(rows, 2 * hashes.length)];
    }
    Arrays.fill(hashes, 0, rows, PRIME_3);
    for (ColumnUpdate column : columns) {
      column.update(batch, hashes);
    }
    long allXor = xor;
    long allSum = sum;
    for (int row = 0; row < rows; row++) {
      long hash = finish(hashes[row], partitionIds[row]);
      allXor ^= hash;
      allSum += hash;
    }
    xor = allXor;
    sum = allSum;
  }

  /** Adds a packed row. */
  public void add(UnsafeRow row, int partition) {
    long hash = finish(hash(row, PRIME_3), partition);
    xor ^= hash;
    sum += hash;
  }

  /** Returns the checksum of all rows added so far. */
  public long value() {
    return xor ^ Long.rotateLeft(sum, 27);
  }

  private static long finish(long hash, int partition) {
    long mixed = mix(hash, partition);
    mixed = (mixed ^ mixed >>> 33) * PRIME_2;
    mixed = (mixed ^ mixed >>> 29) * PRIME_3;
    return mixed ^ mixed >>> 32;
  }

  private static long mix(long hash, long value) {
    return Long.rotateLeft(hash ^ value * PRIME_2, 31) * PRIME_1;
  }

  private static long hash(UnsafeRow row, long seed) {
    return XXH64.hashUnsafeBytes(
        row.getBaseObject(), row.getBaseOffset(), row.getSizeInBytes(), seed);
  }

  private static void booleans(ColumnVector vector, int rows, long[] hashes) {
    boolean hasNull = vector.hasNull();
    for (int row = 0; row < rows; row++) {
      boolean isNull = hasNull && vector.isNullAt(row);
      hashes[row] = mix(hashes[row], isNull ? NULL : vector.getBoolean(row) ? 1 : 0);
    }
  }

  /** Updates the hashes of a batch's rows. */
  @FunctionalInterface
  private interface ColumnUpdate {
    void update(ColumnarBatch batch, long[] hashes);
  }

  /** Updates the hashes of rows with a column. */
  @FunctionalInterface
  private interface VectorUpdate {
    void update(ColumnVector vector, int rows, long[] hashes);
  }

  /** Row numbers and nulls of a vector, in the form that the sources of bytes take. */
  private static final class RowNumbers {
    private int[] rows = new int[0];
    private byte[] nulls = new byte[0];

    int[] upTo(int count) {
      if (rows.length < count) {
        rows = new int[count];
        Arrays.setAll(rows, i -> i);
      }
      return rows;
    }

    /** Returns 1 for each null, or null if there are no nulls. */
    byte[] nulls(ColumnVector vector, int count) {
      if (!vector.hasNull()) {
        return null;
      }
      if (nulls.length < count) {
        nulls = new byte[count];
      }
      for (int row = 0; row < count; row++) {
        nulls[row] = (byte) (vector.isNullAt(row) ? 1 : 0);
      }
      return nulls;
    }
  }

  /** Values of fixed width. */
  private static final class Fixed implements VectorUpdate {
    private final StorageForm form;
    private final FixedGetter getter;
    private final FixedSource source = new FixedSource();
    private final RowNumbers numbers = new RowNumbers();
    private long[] scratch = new long[0];

    Fixed(ColumnLayout layout) {
      form = layout.form();
      getter = FixedGetter.of(layout);
    }

    @Override
    public void update(ColumnVector vector, int rows, long[] hashes) {
      byte[] nulls = numbers.nulls(vector, rows);
      if (source.locate(vector, form)) {
        update(source.base(), source.offset(), rows, nulls, hashes);
      } else {
        int width = form.width();
        if (scratch.length < (long) rows * width / 8 + 1) {
          scratch = new long[Math.toIntExact((long) rows * width / 8 + 1)];
        }
        getter.gather(vector, numbers.upTo(rows), rows, nulls, scratch, width);
        update(scratch, Platform.LONG_ARRAY_OFFSET, rows, nulls, hashes);
      }
    }

    private void update(Object base, long offset, int rows, byte[] nulls, long[] hashes) {
      if (nulls != null) {
        someNull(base, offset, rows, nulls, hashes);
        return;
      }
      // Where the type of the array is known, the JIT compiler reorders reads, or uses vectors.
      if (base instanceof long[] longs && form.width() == Long.BYTES) {
        for (int row = 0; row < rows; row++) {
          hashes[row] = mix(hashes[row], longs[row]);
        }
      } else if (base instanceof double[] doubles) {
        for (int row = 0; row < rows; row++) {
          hashes[row] = mix(hashes[row], Platform.getLong(doubles, offset + 8L * row));
        }
      } else if (base instanceof int[] ints) {
        for (int row = 0; row < rows; row++) {
          hashes[row] = mix(hashes[row], ints[row]);
        }
      } else if (form.width() == Long.BYTES) {
        for (int row = 0; row < rows; row++) {
          hashes[row] = mix(hashes[row], Platform.getLong(base, offset + 8L * row));
        }
      } else {
        for (int row = 0; row < rows; row++) {
          hashes[row] = one(base, offset, row, hashes[row]);
        }
      }
    }

    private void someNull(Object base, long offset, int rows, byte[] nulls, long[] hashes) {
      for (int row = 0; row < rows; row++) {
        hashes[row] =
            nulls[row] == 0 ? one(base, offset, row, hashes[row]) : mix(hashes[row], NULL);
      }
    }

    private long one(Object base, long offset, int row, long hash) {
      return switch (form.width()) {
        case 1 -> mix(hash, Platform.getByte(base, offset + row));
        case 2 -> mix(hash, Platform.getShort(base, offset + 2L * row));
        case 4 -> mix(hash, Platform.getInt(base, offset + 4L * row));
        case 8 -> mix(hash, Platform.getLong(base, offset + 8L * row));
        default -> {
          long low = mix(hash, Platform.getLong(base, offset + 16L * row));
          yield mix(low, Platform.getLong(base, offset + 16L * row + 8));
        }
      };
    }
  }

  /** Strings and other runs of bytes. */
  private static final class Bytes implements VectorUpdate {
    private final BytesSource source;
    private final RowNumbers numbers = new RowNumbers();

    Bytes(ColumnLayout layout) {
      source = new BytesSource(layout);
    }

    @Override
    public void update(ColumnVector vector, int rows, long[] hashes) {
      byte[] nulls = numbers.nulls(vector, rows);
      source.locate(vector, numbers.upTo(rows), rows, nulls);
      if (source.common() instanceof byte[] bytes) {
        oneArray(bytes, rows, nulls, hashes);
      } else {
        for (int row = 0; row < rows; row++) {
          hashes[row] =
              nulls == null || nulls[row] == 0
                  ? mix(
                      hashes[row],
                      BytesHash.of(source.base(row), source.offset(row), source.length(row)))
                  : mix(hashes[row], NULL);
        }
      }
      source.forget();
    }

    /** As for numbers, the type of the array is known here. */
    private void oneArray(byte[] bytes, int rows, byte[] nulls, long[] hashes) {
      for (int row = 0; row < rows; row++) {
        hashes[row] =
            nulls == null || nulls[row] == 0
                ? mix(hashes[row], BytesHash.of(bytes, source.offset(row), source.length(row)))
                : mix(hashes[row], NULL);
      }
    }
  }

  /** Arrays of numbers. */
  private static final class Numbers implements VectorUpdate {
    private final ColumnLayout element;
    private final Nested values;
    private final StorageForm form;
    private final RunSource lists = new RunSource(1);
    private final FixedSource source = new FixedSource();

    Numbers(ColumnLayout layout) {
      element = layout.children().get(0);
      form = element.form();
      values = new Nested(0, layout);
    }

    @Override
    public void update(ColumnVector vector, int rows, long[] hashes) {
      boolean inPlace =
          lists.find(vector) && !lists.child(0).hasNull() && source.locate(lists.child(0), form);
      boolean hasNull = vector.hasNull();
      for (int row = 0; row < rows; row++) {
        if (hasNull && vector.isNullAt(row)) {
          hashes[row] = mix(hashes[row], NULL);
        } else {
          hashes[row] = inPlace ? run(row, hashes[row]) : copied(vector.getArray(row), hashes[row]);
        }
      }
    }

    private long run(int row, long hash) {
      long start = source.offset() + (long) form.width() * lists.start(row);
      return bytes(source.base(), start, lists.length(row), hash);
    }

    private long bytes(Object base, long offset, int elements, long hash) {
      long bytes = (long) form.width() * elements;
      long all = mix(hash, elements);
      // The hash takes lengths of 31 bits.
      for (long at = 0; at < bytes; at += 1 << 30) {
        all = XXH64.hashUnsafeBytes(base, offset + at, (int) Math.min(1 << 30, bytes - at), all);
      }
      return all;
    }

    /** Hashes an array of a vector whose elements are not located, or may be null. */
    private long copied(ColumnarArray array, long hash) {
      for (int i = 0; i < array.numElements(); i++) {
        if (array.isNullAt(i)) {
          return values.elements(element, array, hash);
        }
      }
      return plain(array, hash);
    }

    private long plain(ColumnarArray array, long hash) {
      int count = array.numElements();
      return switch (form) {
        case BYTE -> bytes(array.toByteArray(), Platform.BYTE_ARRAY_OFFSET, count, hash);
        case SHORT -> bytes(array.toShortArray(), Platform.SHORT_ARRAY_OFFSET, count, hash);
        case INT -> bytes(array.toIntArray(), Platform.INT_ARRAY_OFFSET, count, hash);
        case LONG -> bytes(array.toLongArray(), Platform.LONG_ARRAY_OFFSET, count, hash);
        case FLOAT -> bytes(array.toFloatArray(), Platform.FLOAT_ARRAY_OFFSET, count, hash);
        default -> bytes(array.toDoubleArray(), Platform.DOUBLE_ARRAY_OFFSET, count, hash);
      };
    }
  }

  /** Values of nested types, value by value. */
  private static final class Nested implements ColumnUpdate {
    private final int ordinal;
    private final ColumnLayout layout;
    private final IdentityHashMap<ColumnLayout, OpaqueTypes.Reader> readers =
        new IdentityHashMap<>();

    Nested(int ordinal, ColumnLayout layout) {
      this.ordinal = ordinal;
      this.layout = layout;
    }

    @Override
    public void update(ColumnarBatch batch, long[] hashes) {
      for (int row = 0; row < batch.numRows(); row++) {
        hashes[row] = value(layout, batch.getRow(row), ordinal, hashes[row]);
      }
    }

    private long value(ColumnLayout layout, SpecializedGetters from, int i, long hash) {
      if (from.isNullAt(i)) {
        return mix(hash, NULL);
      }
      return switch (layout.form()) {
        case NULL -> mix(hash, NULL);
        case BOOLEAN -> mix(hash, from.getBoolean(i) ? 1 : 0);
        case BYTE -> mix(hash, from.getByte(i));
        case SHORT -> mix(hash, from.getShort(i));
        case INT -> mix(hash, from.getInt(i));
        case LONG -> mix(hash, from.getLong(i));
        case FLOAT -> mix(hash, Float.floatToRawIntBits(from.getFloat(i)));
        case DOUBLE -> mix(hash, Double.doubleToRawLongBits(from.getDouble(i)));
        case DECIMAL64, DECIMAL128 -> decimal((DecimalType) layout.type(), from, i, hash);
        case STRING -> string(from.getUTF8String(i), hash);
        case BINARY -> array(from.getBinary(i), hash);
        case OPAQUE -> array(reader(layout).bytes(from, i), hash);
        case LIST -> elements(layout.children().get(0), from.getArray(i), hash);
        case MAP -> {
          MapData map = from.getMap(i);
          long keys = elements(layout.children().get(0), map.keyArray(), hash);
          yield elements(layout.children().get(1), map.valueArray(), keys);
        }
        case STRUCT -> {
          int fields = layout.children().size();
          yield fields(layout, from.getStruct(i, fields), mix(hash, fields));
        }
        case INTERVAL -> {
          CalendarInterval interval = from.getInterval(i);
          long days = mix(mix(hash, interval.months), interval.days);
          yield mix(days, interval.microseconds);
        }
        case VARIANT -> {
          VariantVal variant = from.getVariant(i);
          yield array(variant.getMetadata(), array(variant.getValue(), hash));
        }
      };
    }

    private OpaqueTypes.Reader reader(ColumnLayout opaque) {
      return readers.computeIfAbsent(opaque, key -> new OpaqueTypes.Reader(key.type()));
    }

    private long decimal(DecimalType type, SpecializedGetters from, int i, long hash) {
      Decimal value = from.getDecimal(i, type.precision(), type.scale());
      return array(value.toJavaBigDecimal().unscaledValue().toByteArray(), hash);
    }

    private long string(UTF8String value, long hash) {
      long length = mix(hash, value.numBytes());
      return XXH64.hashUnsafeBytes(
          value.getBaseObject(), value.getBaseOffset(), value.numBytes(), length);
    }

    private long array(byte[] value, long hash) {
      long length = mix(hash, value.length);
      return XXH64.hashUnsafeBytes(value, Platform.BYTE_ARRAY_OFFSET, value.length, length);
    }

    private long elements(ColumnLayout layout, ArrayData array, long hash) {
      int count = array.numElements();
      long all = mix(hash, count);
      for (int i = 0; i < count; i++) {
        all = value(layout, array, i, all);
      }
      return all;
    }

    private long fields(ColumnLayout layout, InternalRow struct, long hash) {
      long all = hash;
      for (int i = 0; i < layout.children().size(); i++) {
        all = value(layout.children().get(i), struct, i, all);
      }
      return all;
    }
  }
}
