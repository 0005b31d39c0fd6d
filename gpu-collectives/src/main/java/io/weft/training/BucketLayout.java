package io.weft.training;

import io.weft.collectives.buffer.DataType;
import java.util.ArrayList;
import java.util.List;

/**
 * The place of each gradient in the buckets. Buckets take gradients in reverse order of
 * registration, because the backward pass reaches the last layers first. A bucket is closed if the
 * next gradient does not fit or has another type. A gradient larger than a bucket gets its own. The
 * scheme is that of PyTorch's DistributedDataParallel (Li et al., VLDB 2020).
 *
 * @param buckets in the order of their all-reduces
 */
record BucketLayout(List<Bucket> buckets) {
  /** Gradients begin at multiples of a cache line from the start of the bucket. */
  static final int ALIGNMENT = 64;

  /**
   * The place of one gradient.
   *
   * @param parameter index in order of registration
   * @param first its first element within the bucket
   */
  record Place(int parameter, long first, long count) {}

  /**
   * The bucket of one all-reduce.
   *
   * @param count elements, including gaps between gradients
   */
  record Bucket(DataType type, List<Place> places, long count) {}

  /**
   * Lays out gradients.
   *
   * @param bucketBytes 1 or more
   */
  static BucketLayout of(List<ParameterSpec> parameters, long bucketBytes) {
    List<Bucket> buckets = new ArrayList<>();
    List<Place> places = new ArrayList<>();
    DataType type = null;
    long count = 0;
    for (int i = parameters.size() - 1; i >= 0; i--) {
      ParameterSpec parameter = parameters.get(i);
      boolean fits = (count + parameter.count()) * parameter.type().bytes() <= bucketBytes;
      if (!places.isEmpty() && (parameter.type() != type || !fits)) {
        buckets.add(new Bucket(type, List.copyOf(places), count));
        places.clear();
        count = 0;
      }
      type = parameter.type();
      places.add(new Place(i, count, parameter.count()));
      count = aligned(count + parameter.count(), type);
    }
    if (!places.isEmpty()) {
      buckets.add(new Bucket(type, List.copyOf(places), count));
    }
    return new BucketLayout(List.copyOf(buckets));
  }

  private static long aligned(long count, DataType type) {
    long step = ALIGNMENT / type.bytes();
    return (count + step - 1) / step * step;
  }
}
