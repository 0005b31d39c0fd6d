package io.weft.examples.bench.feed;

import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import java.io.Serializable;

/**
 * What ranks got.
 *
 * @param seconds from the scan of the input to the last element read; 0 for a part
 * @param rows tensors
 * @param sum of all elements' bits, the same in any order
 * @param copiedBytes after the exchange, or the files, to have the tensors in memory
 * @param fileBytes of the files in between
 */
record FeedResult(double seconds, long rows, long sum, long copiedBytes, long fileBytes)
    implements Serializable {
  static final FeedResult NONE = new FeedResult(0, 0, 0, 0, 0);

  /** Of tensors in memory, read in place. */
  static FeedResult of(Tensor tensors) {
    long sum = 0;
    long end = tensors.address() + tensors.type().bytes();
    for (long at = tensors.address(); at < end; at += Integer.BYTES) {
      sum += Memory.getInt(at);
    }
    return new FeedResult(0, tensors.type().dimension(0), sum, 0, 0);
  }

  static FeedResult copied(long copiedBytes, long fileBytes) {
    return new FeedResult(0, 0, 0, copiedBytes, fileBytes);
  }

  FeedResult plus(FeedResult other) {
    return new FeedResult(
        seconds + other.seconds,
        rows + other.rows,
        sum + other.sum,
        copiedBytes + other.copiedBytes,
        fileBytes + other.fileBytes);
  }

  FeedResult in(double total) {
    return new FeedResult(total, rows, sum, copiedBytes, fileBytes);
  }
}
