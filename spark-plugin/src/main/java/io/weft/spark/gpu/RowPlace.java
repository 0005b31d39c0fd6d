package io.weft.spark.gpu;

import io.weft.tensor.TensorType;

/**
 * Which rows of a task's input are looked at, for errors. Immutable.
 *
 * @param partition of the input
 * @param first how many rows of it were uploaded before; those that lay on the device are not
 */
record RowPlace(int partition, long first) {
  /** What a value that is not of its column's shape is an error for. */
  IllegalArgumentException mismatch(String column, int row, String found, TensorType type) {
    return new IllegalArgumentException(
        "column %s, uploaded row %d of input partition %d: %s is not %s"
            .formatted(column, first + row, partition, found, type));
  }
}
