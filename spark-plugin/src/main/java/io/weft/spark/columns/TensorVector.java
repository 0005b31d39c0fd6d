package io.weft.spark.columns;

/**
 * A column whose values may be arrays of one length without null elements. Their elements are
 * contiguous and can be copied in bulk. Not thread-safe.
 */
public interface TensorVector {
  /** Whether the values are such arrays. If not, the other methods must not be called. */
  boolean hasTensors();

  /** Returns the address of the elements of a non-null value. */
  long elements(int row);

  /** Number of elements of each value. */
  int elementsOfValue();
}
