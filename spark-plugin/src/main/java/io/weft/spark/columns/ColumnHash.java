package io.weft.spark.columns;

import io.weft.spark.columns.BytesSource.FixedSource;
import io.weft.spark.columns.ColumnLayout.StorageForm;
import java.util.Arrays;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.UserDefinedType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;

/**
 * Hashes one column like Spark: the hash of a row's column is the seed for its next column, and a
 * null does not change it. Reused; not thread-safe.
 */
abstract class ColumnHash {
  private final FixedSource source = new FixedSource();

  /** Creates the hash of a column, or returns null if only Spark's expression hashes that type. */
  static ColumnHash of(DataType declared) {
    if (declared instanceof UserDefinedType) {
      return null;
    }
    ColumnLayout layout = ColumnLayout.of("key", declared);
    return switch (layout.form()) {
      case NULL -> new Nulls();
      case BOOLEAN -> new Booleans();
      case BYTE -> new Bytes();
      case SHORT -> new Shorts();
      case INT -> new Ints();
      case LONG -> new Longs(StorageForm.LONG);
      case FLOAT -> new Floats();
      case DOUBLE -> new Doubles();
      case DECIMAL64 -> new SmallDecimals((DecimalType) declared);
      case DECIMAL128 -> new LargeDecimals((DecimalType) declared);
      case STRING -> isBinary(declared) ? new Runs(layout) : null;
      case BINARY -> new Runs(layout);
      default -> null;
    };
  }

  /** Whether equal strings of that type have equal bytes. */
  private static boolean isBinary(DataType type) {
    return type instanceof StringType string && string.supportsBinaryEquality();
  }

  /**
   * Updates the hashes of rows with a column.
   *
   * @param hashes of the previous columns, one per row
   */
  void update(ColumnVector vector, int rows, int[] hashes) {
    if (vector.hasNull()) {
      for (int row = 0; row < rows; row++) {
        if (!vector.isNullAt(row)) {
          hashes[row] = hash(vector, row, hashes[row]);
        }
      }
    } else {
      updateAll(vector, rows, hashes);
    }
  }

  /** Updates the hashes of rows with a column without nulls. */
  void updateAll(ColumnVector vector, int rows, int[] hashes) {
    for (int row = 0; row < rows; row++) {
      hashes[row] = hash(vector, row, hashes[row]);
    }
  }

  /** Hashes one value that is not null. */
  abstract int hash(ColumnVector vector, int row, int seed);

  final boolean locate(ColumnVector vector, StorageForm form) {
    return source.locate(vector, form);
  }

  final FixedSource source() {
    return source;
  }

  static int hashFloat(float value, int seed) {
    return Murmur3_x86_32.hashInt(value == 0f ? 0 : Float.floatToIntBits(value), seed);
  }

  static int hashDouble(double value, int seed) {
    return Murmur3_x86_32.hashLong(value == 0d ? 0L : Double.doubleToLongBits(value), seed);
  }

  private static final class Nulls extends ColumnHash {
    @Override
    void update(ColumnVector vector, int rows, int[] hashes) {}

    @Override
    int hash(ColumnVector vector, int row, int seed) {
      return seed;
    }
  }

  private static final class Booleans extends ColumnHash {
    @Override
    int hash(ColumnVector vector, int row, int seed) {
      return Murmur3_x86_32.hashInt(vector.getBoolean(row) ? 1 : 0, seed);
    }
  }

  private static final class Bytes extends ColumnHash {
    @Override
    int hash(ColumnVector vector, int row, int seed) {
      return Murmur3_x86_32.hashInt(vector.getByte(row), seed);
    }
  }

  private static final class Shorts extends ColumnHash {
    @Override
    int hash(ColumnVector vector, int row, int seed) {
      return Murmur3_x86_32.hashInt(vector.getShort(row), seed);
    }
  }

  private static final class Ints extends ColumnHash {
    @Override
    int hash(ColumnVector vector, int row, int seed) {
      return Murmur3_x86_32.hashInt(vector.getInt(row), seed);
    }

    @Override
    void updateAll(ColumnVector vector, int rows, int[] hashes) {
      if (!locate(vector, StorageForm.INT)) {
        super.updateAll(vector, rows, hashes);
        return;
      }
      Object base = source().base();
      long offset = source().offset();
      for (int row = 0; row < rows; row++) {
        hashes[row] = Murmur3_x86_32.hashInt(Platform.getInt(base, offset + 4L * row), hashes[row]);
      }
    }
  }

  private static class Longs extends ColumnHash {
    private final StorageForm form;

    Longs(StorageForm form) {
      this.form = form;
    }

    @Override
    int hash(ColumnVector vector, int row, int seed) {
      return Murmur3_x86_32.hashLong(vector.getLong(row), seed);
    }

    @Override
    void updateAll(ColumnVector vector, int rows, int[] hashes) {
      if (!locate(vector, form)) {
        super.updateAll(vector, rows, hashes);
        return;
      }
      Object base = source().base();
      long offset = source().offset();
      for (int row = 0; row < rows; row++) {
        long value = Platform.getLong(base, offset + 8L * row);
        hashes[row] = Murmur3_x86_32.hashLong(value, hashes[row]);
      }
    }
  }

  private static final class Floats extends ColumnHash {
    @Override
    int hash(ColumnVector vector, int row, int seed) {
      return hashFloat(vector.getFloat(row), seed);
    }
  }

  private static final class Doubles extends ColumnHash {
    @Override
    int hash(ColumnVector vector, int row, int seed) {
      return hashDouble(vector.getDouble(row), seed);
    }
  }

  private static final class SmallDecimals extends Longs {
    private final DecimalType type;

    SmallDecimals(DecimalType type) {
      super(StorageForm.DECIMAL64);
      this.type = type;
    }

    @Override
    int hash(ColumnVector vector, int row, int seed) {
      long value =
          vector instanceof WritableColumnVector && type.precision() <= Decimal.MAX_INT_DIGITS()
              ? vector.getInt(row)
              : vector.getDecimal(row, type.precision(), type.scale()).toUnscaledLong();
      return Murmur3_x86_32.hashLong(value, seed);
    }
  }

  /** Hashes the shortest two's complement of the unscaled value, highest byte first. */
  private static final class LargeDecimals extends ColumnHash {
    private final DecimalType type;
    private final long[] value = new long[2];
    private final long[] shortest = new long[2];

    LargeDecimals(DecimalType type) {
      this.type = type;
    }

    @Override
    int hash(ColumnVector vector, int row, int seed) {
      if (vector instanceof BlockColumnVector block) {
        return hash(null, block.values() + 16L * row, seed);
      }
      if (vector instanceof WritableColumnVector) {
        Decimal128.put(vector.getBinary(row), value, Platform.LONG_ARRAY_OFFSET);
        return hash(value, Platform.LONG_ARRAY_OFFSET, seed);
      }
      Decimal decimal = vector.getDecimal(row, type.precision(), type.scale());
      byte[] bytes = decimal.toJavaBigDecimal().unscaledValue().toByteArray();
      return Murmur3_x86_32.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, seed);
    }

    private int hash(Object base, long offset, int seed) {
      int length = Decimal128.shortest(base, offset, shortest, Platform.LONG_ARRAY_OFFSET);
      return Murmur3_x86_32.hashUnsafeBytes(shortest, Platform.LONG_ARRAY_OFFSET, length, seed);
    }
  }

  /** Hashes the bytes of strings and binary values. */
  private static final class Runs extends ColumnHash {
    private final BytesSource bytes;
    private int[] rowNumbers = new int[0];
    private byte[] nulls = new byte[0];

    Runs(ColumnLayout layout) {
      bytes = new BytesSource(layout);
    }

    @Override
    int hash(ColumnVector vector, int row, int seed) {
      throw new UnsupportedOperationException("Strings are hashed in batches");
    }

    @Override
    void update(ColumnVector vector, int rows, int[] hashes) {
      reserve(rows);
      boolean hasNull = vector.hasNull();
      for (int row = 0; hasNull && row < rows; row++) {
        nulls[row] = (byte) (vector.isNullAt(row) ? 1 : 0);
      }
      bytes.locate(vector, rowNumbers, rows, hasNull ? nulls : null);
      for (int row = 0; row < rows; row++) {
        if (!hasNull || nulls[row] == 0) {
          hashes[row] =
              Murmur3_x86_32.hashUnsafeBytes(
                  bytes.base(row), bytes.offset(row), bytes.length(row), hashes[row]);
        }
      }
      bytes.forget();
    }

    private void reserve(int rows) {
      if (rowNumbers.length < rows) {
        rowNumbers = new int[rows];
        Arrays.setAll(rowNumbers, i -> i);
        nulls = new byte[rows];
      }
    }
  }
}
