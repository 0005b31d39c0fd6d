package io.weft.spark.columns;

import io.weft.spark.columns.BytesSource.FixedSource;
import io.weft.spark.columns.ColumnLayout.StorageForm;
import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.Platform;

/**
 * Reads values of fixed width one by one with Spark's getters: from rows and arrays, and from
 * vectors without contiguous memory (dictionaries, constants, vectors of other libraries).
 */
abstract class FixedGetter {
  /** Returns the getter for a column of fixed width. */
  static FixedGetter of(ColumnLayout layout) {
    return switch (layout.form()) {
      case BYTE -> new Bytes();
      case SHORT -> new Shorts();
      case INT -> new Ints();
      case LONG -> new Longs();
      case FLOAT -> new Floats();
      case DOUBLE -> new Doubles();
      case DECIMAL64 -> new Decimals64((DecimalType) layout.type());
      case DECIMAL128 -> new Decimals128((DecimalType) layout.type());
      default -> throw new IllegalArgumentException(layout.form() + " has no fixed width");
    };
  }

  /**
   * Writes a value that is not null.
   *
   * @return false if the value does not fit its type and becomes null, as in Spark's rows
   */
  abstract boolean put(SpecializedGetters source, int ordinal, long target);

  /** Writes a non-null value of a vector. */
  abstract void put(ColumnVector source, int row, Object base, long offset);

  /**
   * Writes the values at the given rows contiguously, zeros for nulls.
   *
   * @param nulls 1 for a null, by position; null if there are no nulls
   */
  void gather(ColumnVector source, int[] rows, int count, byte[] nulls, long[] target, int width) {
    long at = Platform.LONG_ARRAY_OFFSET;
    for (int i = 0; i < count; i++, at += width) {
      if (nulls == null || nulls[i] == 0) {
        put(source, rows[i], target, at);
      } else {
        zero(target, at, width);
      }
    }
  }

  private static void zero(long[] target, long offset, int width) {
    for (int i = 0; i < width; i++) {
      Platform.putByte(target, offset + i, (byte) 0);
    }
  }

  private static final class Bytes extends FixedGetter {
    @Override
    boolean put(SpecializedGetters source, int ordinal, long target) {
      Platform.putByte(null, target, source.getByte(ordinal));
      return true;
    }

    @Override
    void put(ColumnVector source, int row, Object base, long offset) {
      Platform.putByte(base, offset, source.getByte(row));
    }
  }

  private static final class Shorts extends FixedGetter {
    @Override
    boolean put(SpecializedGetters source, int ordinal, long target) {
      Platform.putShort(null, target, source.getShort(ordinal));
      return true;
    }

    @Override
    void put(ColumnVector source, int row, Object base, long offset) {
      Platform.putShort(base, offset, source.getShort(row));
    }
  }

  private static final class Ints extends FixedGetter {
    @Override
    boolean put(SpecializedGetters source, int ordinal, long target) {
      Platform.putInt(null, target, source.getInt(ordinal));
      return true;
    }

    @Override
    void put(ColumnVector source, int row, Object base, long offset) {
      Platform.putInt(base, offset, source.getInt(row));
    }
  }

  private static final class Longs extends FixedGetter {
    @Override
    boolean put(SpecializedGetters source, int ordinal, long target) {
      Platform.putLong(null, target, source.getLong(ordinal));
      return true;
    }

    @Override
    void put(ColumnVector source, int row, Object base, long offset) {
      Platform.putLong(base, offset, source.getLong(row));
    }
  }

  private static final class Floats extends FixedGetter {
    @Override
    boolean put(SpecializedGetters source, int ordinal, long target) {
      Platform.putFloat(null, target, source.getFloat(ordinal));
      return true;
    }

    @Override
    void put(ColumnVector source, int row, Object base, long offset) {
      Platform.putFloat(base, offset, source.getFloat(row));
    }
  }

  private static final class Doubles extends FixedGetter {
    @Override
    boolean put(SpecializedGetters source, int ordinal, long target) {
      Platform.putDouble(null, target, source.getDouble(ordinal));
      return true;
    }

    @Override
    void put(ColumnVector source, int row, Object base, long offset) {
      Platform.putDouble(base, offset, source.getDouble(row));
    }
  }

  /** Returns a decimal with the type's precision and scale, or null if the value does not fit. */
  private static Decimal fit(Decimal value, DecimalType type) {
    if (value.precision() == type.precision() && value.scale() == type.scale()) {
      return value;
    }
    Decimal copy = value.clone();
    return copy.changePrecision(type.precision(), type.scale()) ? copy : null;
  }

  private static final class Decimals64 extends FixedGetter {
    private final DecimalType type;

    Decimals64(DecimalType type) {
      this.type = type;
    }

    @Override
    boolean put(SpecializedGetters source, int ordinal, long target) {
      Decimal value = fit(source.getDecimal(ordinal, type.precision(), type.scale()), type);
      Platform.putLong(null, target, value == null ? 0 : value.toUnscaledLong());
      return value != null;
    }

    @Override
    void put(ColumnVector source, int row, Object base, long offset) {
      Platform.putLong(base, offset, unscaled(source, row));
    }

    private long unscaled(ColumnVector source, int row) {
      if (source instanceof WritableColumnVector) {
        return type.precision() <= Decimal.MAX_INT_DIGITS()
            ? source.getInt(row)
            : source.getLong(row);
      }
      return source.getDecimal(row, type.precision(), type.scale()).toUnscaledLong();
    }
  }

  private static final class Decimals128 extends FixedGetter {
    private final DecimalType type;
    private final FixedSource bytes = new FixedSource();

    Decimals128(DecimalType type) {
      this.type = type;
    }

    @Override
    boolean put(SpecializedGetters source, int ordinal, long target) {
      if (source instanceof UnsafeRow || source instanceof UnsafeArrayData) {
        // Spark's packed forms have the bytes, and only values that fit the type.
        Decimal128.put(source.getBinary(ordinal), null, target);
        return true;
      }
      Decimal value = fit(source.getDecimal(ordinal, type.precision(), type.scale()), type);
      put(value == null ? BigInteger.ZERO : unscaled(value.toJavaBigDecimal()), null, target);
      return value != null;
    }

    @Override
    void put(ColumnVector source, int row, Object base, long offset) {
      if (source instanceof WritableColumnVector) {
        Decimal128.put(source.getBinary(row), base, offset);
      } else {
        Decimal value = source.getDecimal(row, type.precision(), type.scale());
        put(unscaled(value.toJavaBigDecimal()), base, offset);
      }
    }

    @Override
    void gather(
        ColumnVector source, int[] rows, int count, byte[] nulls, long[] target, int width) {
      if (source instanceof WritableColumnVector writable
          && !writable.hasDictionary()
          && !writable.isAllNull()
          && bytes.locate(writable.arrayData(), StorageForm.BYTE)) {
        gatherBytes(writable, rows, count, nulls, target);
      } else {
        super.gather(source, rows, count, nulls, target, width);
      }
    }

    private void gatherBytes(
        WritableColumnVector source, int[] rows, int count, byte[] nulls, long[] target) {
      long at = Platform.LONG_ARRAY_OFFSET;
      for (int i = 0; i < count; i++, at += 16) {
        // A null may have the bytes of an earlier batch.
        boolean present = nulls == null || nulls[i] == 0;
        int length = present ? source.getArrayLength(rows[i]) : 0;
        long from = bytes.offset() + (present ? source.getArrayOffset(rows[i]) : 0);
        Decimal128.put(bytes.base(), from, length, target, at);
      }
    }

    private static BigInteger unscaled(BigDecimal value) {
      return value.unscaledValue();
    }

    private static void put(BigInteger value, Object base, long offset) {
      Decimal128.put(value.toByteArray(), base, offset);
    }
  }
}
