package io.weft.spark.columns;

import io.weft.spark.compat.OnHeapArrays;
import org.apache.arrow.vector.BaseFixedWidthVector;
import org.apache.arrow.vector.ValueVector;
import org.apache.spark.sql.execution.vectorized.OffHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.Platform;

/**
 * Locates the contiguous memory of a vector of values of fixed width, starting at row 0. Reused;
 * the location is valid until the vector is written to.
 */
final class FixedSource {
  private Object base;
  private long offset;

  /** Returns the array with the values, or null if they are off-heap. */
  Object base() {
    return base;
  }

  /** Returns the offset or address of row 0. */
  long offset() {
    return offset;
  }

  /**
   * Locates the values.
   *
   * @return false if they are not contiguous in memory, or do not have the width of the form
   */
  boolean locate(ColumnVector vector, Form form) {
    if (vector instanceof OnHeapColumnVector onHeap) {
      return !onHeap.hasDictionary() && onHeap(onHeap, form);
    }
    if (vector instanceof BlockColumnVector block) {
      return block.form() == form && found(null, block.values());
    }
    if (vector instanceof OffHeapColumnVector offHeap) {
      return !offHeap.hasDictionary()
          && !narrow(offHeap, form)
          && found(null, offHeap.valuesNativeAddress());
    }
    // Subclasses may change what the getters return.
    if (vector.getClass() == ArrowColumnVector.class) {
      return arrow(((ArrowColumnVector) vector).getValueVector(), form);
    }
    return false;
  }

  private boolean onHeap(OnHeapColumnVector vector, Form form) {
    Object array = array(vector, form);
    return array != null && found(array, arrayOffset(form));
  }

  /** Returns the array with the vector's values, or null if there is none of that form. */
  static Object array(OnHeapColumnVector vector, Form form) {
    return switch (form) {
      case BYTE -> OnHeapArrays.bytes(vector);
      case SHORT -> OnHeapArrays.shorts(vector);
      case INT -> OnHeapArrays.ints(vector);
      case LONG, DECIMAL64 -> OnHeapArrays.longs(vector);
      case FLOAT -> OnHeapArrays.floats(vector);
      case DOUBLE -> OnHeapArrays.doubles(vector);
      default -> null;
    };
  }

  private static long arrayOffset(Form form) {
    return switch (form) {
      case BYTE -> Platform.BYTE_ARRAY_OFFSET;
      case SHORT -> Platform.SHORT_ARRAY_OFFSET;
      case INT -> Platform.INT_ARRAY_OFFSET;
      case FLOAT -> Platform.FLOAT_ARRAY_OFFSET;
      case DOUBLE -> Platform.DOUBLE_ARRAY_OFFSET;
      default -> Platform.LONG_ARRAY_OFFSET;
    };
  }

  private static boolean narrow(OffHeapColumnVector vector, Form form) {
    return form == Form.DECIMAL128
        || (form == Form.DECIMAL64 && DecimalType.is32BitDecimalType(vector.dataType()));
  }

  private boolean arrow(ValueVector vector, Form form) {
    return vector instanceof BaseFixedWidthVector values
        && values.getTypeWidth() == form.width()
        && found(null, values.getDataBufferAddress());
  }

  private boolean found(Object where, long at) {
    base = where;
    offset = at;
    return where != null || at != 0;
  }
}
