package io.weft.collectives.host;

/**
 * How ranks part a run of elements among them: equal but for rounding, and cut at multiples of 128
 * bytes so that no two ranks write to one line.
 */
final class Shares {
  private static final int LINE = 128;

  private final long count;
  private final int ranks;
  private final long granule;

  /**
   * A parting.
   *
   * @param count elements in all
   */
  Shares(long count, int ranks, int elementBytes) {
    this.count = count;
    this.ranks = ranks;
    this.granule = Math.max(1, LINE / elementBytes);
  }

  /** First element of a rank's share; of rank ranks, the end. */
  long start(int rank) {
    return rank == ranks ? count : Math.min(count, roundUp(exact(rank)));
  }

  /** count * rank / ranks without overflow. */
  private long exact(int rank) {
    return count / ranks * rank + count % ranks * rank / ranks;
  }

  private long roundUp(long element) {
    return (element + granule - 1) / granule * granule;
  }

  long length(int rank) {
    return start(rank + 1) - start(rank);
  }
}
