package io.weft.collectives.host;

import io.weft.collectives.Division;

/**
 * Divides a run of elements between ranks: equally but for rounding, and cut at multiples of 128
 * bytes so that no two ranks write to one line.
 */
final class Shares {
  private static final int LINE = 128;

  private final long count;
  private final int ranks;
  private final long granule;

  /**
   * A division between ranks.
   *
   * @param count the number of all elements
   */
  Shares(long count, int ranks, int elementBytes) {
    this.count = count;
    this.ranks = ranks;
    this.granule = Math.max(1, Division.quotient(LINE, elementBytes));
  }

  /** The first element of a rank's share. For the number of ranks, the end. */
  long start(int rank) {
    return rank == ranks ? count : Math.min(count, roundUp(exact(rank)));
  }

  /** count * rank / ranks without overflow. */
  private long exact(int rank) {
    long each = Division.quotient(count, ranks);
    return each * rank + Division.quotient((count - each * ranks) * rank, ranks);
  }

  private long roundUp(long element) {
    return Division.quotient(element + granule - 1, granule) * granule;
  }

  long length(int rank) {
    return start(rank + 1) - start(rank);
  }
}
