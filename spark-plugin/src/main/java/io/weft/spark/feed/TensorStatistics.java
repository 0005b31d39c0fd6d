package io.weft.spark.feed;

import io.weft.collectives.arithmetic.BFloat16;
import io.weft.collectives.arithmetic.Float16;
import io.weft.tensor.Tensor;
import java.nio.ByteBuffer;

/**
 * Statistics of the values of a tensor.
 *
 * @param min of the finite values, NaN if there is none
 * @param max of the finite values, NaN if there is none
 * @param mean of the finite values, in double arithmetic; NaN if there is none
 * @param zeros of either sign
 * @param nans values that are not a number
 * @param infinities of either sign
 */
record TensorStatistics(
    double min, double max, double mean, long zeros, long nans, long infinities) {
  /** Computes the statistics of a tensor of up to 2 GiB. */
  static TensorStatistics of(Tensor tensor) {
    ByteBuffer bytes = tensor.byteBuffer();
    double min = Double.POSITIVE_INFINITY;
    double max = Double.NEGATIVE_INFINITY;
    double sum = 0;
    long zeros = 0;
    long nans = 0;
    long infinities = 0;
    int count = (int) tensor.type().elements();
    for (int i = 0; i < count; i++) {
      double value = value(bytes, tensor, i);
      if (Double.isNaN(value)) {
        nans++;
      } else if (Double.isInfinite(value)) {
        infinities++;
      } else {
        min = Math.min(min, value);
        max = Math.max(max, value);
        sum += value;
        zeros += value == 0 ? 1 : 0;
      }
    }
    long finite = count - nans - infinities;
    return finite == 0
        ? new TensorStatistics(Double.NaN, Double.NaN, Double.NaN, zeros, nans, infinities)
        : new TensorStatistics(min, max, sum / finite, zeros, nans, infinities);
  }

  private static double value(ByteBuffer bytes, Tensor tensor, int i) {
    return switch (tensor.type().dtype()) {
      case INT8 -> bytes.get(i);
      case INT16 -> bytes.getShort(2 * i);
      case INT32 -> bytes.getInt(4 * i);
      case INT64 -> (double) bytes.getLong(8 * i);
      case FLOAT16 -> Float16.toFloat(bytes.getShort(2 * i));
      case BFLOAT16 -> BFloat16.toFloat(bytes.getShort(2 * i));
      case FLOAT32 -> bytes.getFloat(4 * i);
      case FLOAT64 -> bytes.getDouble(8 * i);
    };
  }
}
