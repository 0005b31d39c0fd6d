package io.weft.spark.columns;

/**
 * A column whose values may be arrays of one length, none of whose elements is null: they lie one
 * behind the other and can be copied in bulk. For one thread.
 */
public interface TensorVector {
  /** Whether its values are; nothing else is asked where they are not. */
  boolean hasTensors();

  /** Where the elements of a value lie, which is not null. */
  long elements(int row);

  /** Elements of each value. */
  int elementsOfValue();
}
