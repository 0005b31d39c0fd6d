package io.weft.spark.gpu.jcuda;

import java.util.Objects;
import jcuda.driver.CUdeviceptr;

/**
 * A column in memory of a device, without padding. Values have the width of their Spark type:
 * booleans 1 byte, dates 4, timestamps and decimals to 18 digits 8, other decimals 16. Tensors of
 * one shape follow each other. Strings and binary values are bytes, with offsets.
 *
 * @param validity a bit for each row, lowest first, 1 for a value; null if no row is null
 * @param offsets of strings: an int for each row and one more, from 0 to {@code bytes}; null for
 *     other types
 * @param data the values, or the bytes of all strings
 * @param bytes the length of the data
 */
public record JcudaColumn(CUdeviceptr validity, CUdeviceptr offsets, CUdeviceptr data, long bytes) {
  /**
   * Checks the parts.
   *
   * @throws IllegalArgumentException if the length is negative
   */
  public JcudaColumn {
    Objects.requireNonNull(data, "a column has no data");
    if (bytes < 0) {
      throw new IllegalArgumentException("a column of " + bytes + " bytes");
    }
  }

  /** Creates a column of values of fixed width without nulls. */
  public static JcudaColumn of(CUdeviceptr data, long bytes) {
    return new JcudaColumn(null, null, data, bytes);
  }

  /** Creates a column of strings without nulls. */
  public static JcudaColumn ofStrings(CUdeviceptr offsets, CUdeviceptr data, long bytes) {
    return new JcudaColumn(null, Objects.requireNonNull(offsets), data, bytes);
  }

  /** The same column with these validity bits; null for a column without nulls. */
  public JcudaColumn withValidity(CUdeviceptr bits) {
    return new JcudaColumn(bits, offsets, data, bytes);
  }
}
