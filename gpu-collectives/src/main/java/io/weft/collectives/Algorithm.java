package io.weft.collectives;

import java.util.Locale;

/** How an operation was carried out. Chosen by size and topology, the same on every rank. */
public enum Algorithm {
  /** One rank, or nothing to move. */
  TRIVIAL,
  /** Threads of one process meet and the last to come computes for all, element by element. */
  REFERENCE,
  /**
   * Every rank puts its elements beside a flag in shared memory and reads those of all others: one
   * crossing of the memory bus, for small sizes. The flat algorithm of shared-memory MPI
   * collectives (Graham and Shipman, EuroPVM/MPI 2008).
   */
  ONE_SHOT,
  /**
   * Reduce-scatter and all-gather in place: every rank reduces its share of all ranks' symmetric
   * buffers and writes the result into all of them. Each byte is read and written once; no copy.
   * The reduce-scatter/all-gather split is Rabenseifner's (ICCS 2004).
   */
  IN_PLACE,
  /**
   * As IN_PLACE for buffers that only their owner can reach: chunk by chunk through staging buffers
   * that stay in the cache, pipelined so that one synchronisation serves each chunk.
   */
  STAGED,
  /** Every rank sends one neighbour a part and takes one from the other (Patarasuk, Yuan 2009). */
  RING,
  /**
   * In step k ranks 2^k apart exchange all they have; ranks beyond a power of two fold in first
   * (Thakur, Rabenseifner, Gropp 2005).
   */
  RECURSIVE_DOUBLING,
  /** A tree in which the ranks that have the data double in every step (Thakur et al. 2005). */
  BINOMIAL_TREE,
  /**
   * In step k rank r signals r + 2^k (Hensgen, Finkel, Manber 1988), or sends it all it has so far
   * (Bruck et al. 1997).
   */
  DISSEMINATION,
  /** All pairs at once, every transfer as far as its connection takes it. */
  PAIRWISE,
  /**
   * Shared memory within every host, one rank per host over the network between them (Karonis et
   * al., IPDPS 2000).
   */
  HIERARCHICAL,
  /** NCCL moved the data between devices, in whichever way it chose. */
  NCCL,
  /** Devices wrote each element once, to addresses that stand for the memory of all of them. */
  MULTICAST,
  /**
   * Copied to the host, reduced there and copied back: what NCCL does not compute as it is defined.
   */
  THROUGH_HOST,

  /** The operation failed, maybe before a way was chosen: what counts failures. */
  UNFINISHED;

  private final String text = name().toLowerCase(Locale.ROOT).replace('_', '-');

  /** The name that metrics and the benchmark print. */
  @Override
  public String toString() {
    return text;
  }
}
