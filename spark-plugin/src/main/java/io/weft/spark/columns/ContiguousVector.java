package io.weft.spark.columns;

/**
 * A column whose values can be copied in bulk: values of one width, or arrays of one length without
 * null elements. Not thread-safe.
 */
public interface ContiguousVector {
  /**
   * Returns the address of the value of row 0. The others follow, also where rows are null.
   *
   * @param width of a value in a chunk
   * @return 0 if the values have another width or format
   */
  long values(int width);

  /** Whether the values are arrays of one length. If not, the methods below must not be called. */
  boolean hasTensors();

  /** Returns the address of the elements of a non-null value. */
  long elements(int row);

  /** Number of elements of each value. */
  int elementsOfValue();
}
