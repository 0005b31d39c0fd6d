package io.weft.spark.gpu;

import io.weft.tensor.TensorType;

/**
 * The position of checked rows in a task's input, for error messages. Immutable.
 *
 * @param partition of the input
 * @param first number of rows of it that were uploaded before; rows that were already on the device
 *     do not count
 */
record RowPlace(int partition, long first) {
  /** Makes the error for a value that does not match its column's shape. */
  IllegalArgumentException mismatch(String column, int row, String found, TensorType type) {
    return new IllegalArgumentException(
        "column %s, uploaded row %d of input partition %d: %s is not %s"
            .formatted(column, first + row, partition, found, type));
  }
}
