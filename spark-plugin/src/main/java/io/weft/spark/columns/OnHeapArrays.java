package io.weft.spark.columns;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.Platform;

/**
 * The arrays behind Spark's on-heap vectors, which have no public accessor that does not copy. If a
 * Spark names them differently there is no array, and callers go through the vector's getters.
 */
final class OnHeapArrays {
  private static final VarHandle NULLS = find("nulls", byte[].class);
  private static final VarHandle STARTS = find("arrayOffsets", int[].class);
  private static final VarHandle LENGTHS = find("arrayLengths", int[].class);
  private static final VarHandle BYTES = find("byteData", byte[].class);
  private static final VarHandle SHORTS = find("shortData", short[].class);
  private static final VarHandle INTS = find("intData", int[].class);
  private static final VarHandle LONGS = find("longData", long[].class);
  private static final VarHandle FLOATS = find("floatData", float[].class);
  private static final VarHandle DOUBLES = find("doubleData", double[].class);

  private OnHeapArrays() {}

  /** The array that holds values of that form, or null if there is none within reach. */
  static Object of(OnHeapColumnVector vector, Form form) {
    return switch (form) {
      case BYTE -> BYTES == null ? null : (byte[]) BYTES.get(vector);
      case SHORT -> SHORTS == null ? null : (short[]) SHORTS.get(vector);
      case INT -> INTS == null ? null : (int[]) INTS.get(vector);
      case LONG, DECIMAL64 -> LONGS == null ? null : (long[]) LONGS.get(vector);
      case FLOAT -> FLOATS == null ? null : (float[]) FLOATS.get(vector);
      case DOUBLE -> DOUBLES == null ? null : (double[]) DOUBLES.get(vector);
      default -> null;
    };
  }

  /** A byte for each row, 1 for a null; or null if that is not within reach. */
  static byte[] nulls(ColumnVector vector) {
    return NULLS != null && vector instanceof OnHeapColumnVector onHeap && !onHeap.isAllNull()
        ? (byte[]) NULLS.get(onHeap)
        : null;
  }

  /** Where each row's bytes or elements start; or null if that is not within reach. */
  static int[] starts(ColumnVector vector) {
    return STARTS != null && vector instanceof OnHeapColumnVector onHeap
        ? (int[]) STARTS.get(onHeap)
        : null;
  }

  /** How many bytes or elements each row has; or null if that is not within reach. */
  static int[] lengths(ColumnVector vector) {
    return LENGTHS != null && vector instanceof OnHeapColumnVector onHeap
        ? (int[]) LENGTHS.get(onHeap)
        : null;
  }

  /** Where the first element of such an array is. */
  static long offset(Form form) {
    return switch (form) {
      case BYTE -> Platform.BYTE_ARRAY_OFFSET;
      case SHORT -> Platform.SHORT_ARRAY_OFFSET;
      case INT -> Platform.INT_ARRAY_OFFSET;
      case FLOAT -> Platform.FLOAT_ARRAY_OFFSET;
      case DOUBLE -> Platform.DOUBLE_ARRAY_OFFSET;
      default -> Platform.LONG_ARRAY_OFFSET;
    };
  }

  private static VarHandle find(String field, Class<?> type) {
    try {
      return MethodHandles.privateLookupIn(OnHeapColumnVector.class, MethodHandles.lookup())
          .findVarHandle(OnHeapColumnVector.class, field, type);
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }
}
