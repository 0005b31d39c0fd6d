package io.weft.collectives;

import java.util.Locale;

/**
 * The algorithm that carried out an operation. It depends on size, topology and what the ranks of a
 * host measured. It is the same on every rank.
 */
public enum Algorithm {
  /** One rank, or no data to move. */
  TRIVIAL,
  /**
   * The ranks are threads of one process. The last one to arrive computes the results of all,
   * element by element.
   */
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
   * As IN_PLACE, for buffers that only their owner can reach. Data goes chunk by chunk through
   * staging buffers that stay in the cache, pipelined so that one synchronisation serves each
   * chunk.
   */
  STAGED,
  /**
   * Every rank reads its part of the others' private buffers directly, with one copy by the kernel
   * (process_vm_readv).
   */
  KERNEL_COPY,
  /** Every rank sends to one neighbour and receives from the other (Patarasuk, Yuan 2009). */
  RING,
  /**
   * In step k ranks 2^k apart exchange all data they have. Ranks beyond a power of two fold in
   * first (Thakur, Rabenseifner, Gropp 2005).
   */
  RECURSIVE_DOUBLING,
  /**
   * A tree in which the number of ranks that have the data doubles in every step (Thakur et al.
   * 2005).
   */
  BINOMIAL_TREE,
  /**
   * In step k rank r signals r + 2^k (Hensgen, Finkel, Manber 1988), or sends it all data it has so
   * far (Bruck et al. 1997).
   */
  DISSEMINATION,
  /** All pairs at once; every transfer progresses as fast as its connection allows. */
  PAIRWISE,
  /**
   * Shared memory within each host, and one rank per host over the network between hosts (Karonis
   * et al., IPDPS 2000).
   */
  HIERARCHICAL,
  /** NCCL moved the data between devices, with an algorithm of its own choice. */
  NCCL,
  /**
   * Copied to the host, reduced there and copied back, for operations that NCCL does not compute as
   * defined here.
   */
  THROUGH_HOST,

  /** The operation failed, possibly before an algorithm was chosen. Failures are counted here. */
  UNFINISHED;

  private final String text = name().toLowerCase(Locale.ROOT).replace('_', '-');

  /** The name in metrics and benchmark output. */
  @Override
  public String toString() {
    return text;
  }
}
