package io.weft.examples.bench.collectives;

import io.weft.collectives.RaggedLayout;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * The uneven parts of a ragged all-to-all. Part k of a rank's elements goes to the kth rank after
 * it and is k + 1 times as large as part 0, rounded. It is at the same place in the buffers of the
 * sender and the receiver, so both are full. {@code mpi-collectives.c} uses the same parts.
 *
 * @param count elements that a rank sends, and that it receives
 */
record RaggedParts(long count, int nranks) {
  /** Returns the first element of a part, or the count after the last part. */
  long start(int part) {
    return count * part * (part + 1) / (nranks * (nranks + 1L));
  }

  private long size(int part) {
    return start(part + 1) - start(part);
  }

  private int part(int from, int to) {
    return Math.floorMod(to - from, nranks);
  }

  /** Returns the rank that sends an element to this rank. */
  int sender(int rank, long index) {
    int part = 0;
    while (index >= start(part + 1)) {
      part++;
    }
    return Math.floorMod(rank - part, nranks);
  }

  /** The part of the elements that goes to other ranks. */
  static double sentAway(int nranks) {
    return 1 - 2.0 / (nranks * (nranks + 1.0));
  }

  /** Returns the layout of a rank; a row is an element. */
  RaggedLayout layout(int rank) {
    long[] starts = peers().mapToLong(peer -> start(part(rank, peer))).toArray();
    long[] sent = peers().mapToLong(peer -> size(part(rank, peer))).toArray();
    LongStream received = peers().mapToLong(peer -> size(part(peer, rank)));
    return new RaggedLayout(1, starts, sent, starts, received.toArray());
  }

  private IntStream peers() {
    return IntStream.range(0, nranks);
  }
}
