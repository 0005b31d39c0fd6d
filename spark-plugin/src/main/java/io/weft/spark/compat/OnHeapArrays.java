package io.weft.spark.compat;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;

/**
 * The arrays inside Spark's on-heap vectors, for which Spark has no public accessor without a copy.
 * If a Spark version names a field differently, the method returns null, and callers use the
 * vector's getters. Stateless.
 */
public final class OnHeapArrays {
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

  /** Returns the array of byte values, or null if it cannot be read. */
  public static byte[] bytes(OnHeapColumnVector vector) {
    return BYTES == null ? null : (byte[]) BYTES.get(vector);
  }

  /** Returns the array of short values, or null if it cannot be read. */
  public static short[] shorts(OnHeapColumnVector vector) {
    return SHORTS == null ? null : (short[]) SHORTS.get(vector);
  }

  /** Returns the array of int values, or null if it cannot be read. */
  public static int[] ints(OnHeapColumnVector vector) {
    return INTS == null ? null : (int[]) INTS.get(vector);
  }

  /** Returns the array of long values, or null if it cannot be read. */
  public static long[] longs(OnHeapColumnVector vector) {
    return LONGS == null ? null : (long[]) LONGS.get(vector);
  }

  /** Returns the array of float values, or null if it cannot be read. */
  public static float[] floats(OnHeapColumnVector vector) {
    return FLOATS == null ? null : (float[]) FLOATS.get(vector);
  }

  /** Returns the array of double values, or null if it cannot be read. */
  public static double[] doubles(OnHeapColumnVector vector) {
    return DOUBLES == null ? null : (double[]) DOUBLES.get(vector);
  }

  /** Returns a byte for each row, 1 for a null; or null if they cannot be read. */
  public static byte[] nulls(ColumnVector vector) {
    return NULLS != null && vector instanceof OnHeapColumnVector onHeap && !onHeap.isAllNull()
        ? (byte[]) NULLS.get(onHeap)
        : null;
  }

  /** Returns the first byte or element of each row; or null if they cannot be read. */
  public static int[] starts(ColumnVector vector) {
    return STARTS != null && vector instanceof OnHeapColumnVector onHeap
        ? (int[]) STARTS.get(onHeap)
        : null;
  }

  /** Returns the number of bytes or elements of each row; or null if they cannot be read. */
  public static int[] lengths(ColumnVector vector) {
    return LENGTHS != null && vector instanceof OnHeapColumnVector onHeap
        ? (int[]) LENGTHS.get(onHeap)
        : null;
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
