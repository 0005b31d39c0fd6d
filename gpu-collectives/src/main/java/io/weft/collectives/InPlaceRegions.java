package io.weft.collectives;

import java.util.List;
import java.util.Optional;

/**
 * An extension of {@link Communicator} for ranks that map each other's memory. Collectives then
 * work in place on buffers inside a region. Thread-safe.
 */
public interface InPlaceRegions {
  /**
   * Adds a range of memory that every rank has. All ranks add and remove the same regions in the
   * same order, between operations.
   *
   * @param bytes the same on all ranks
   * @param bases the address of each rank's range in this process, by rank
   * @return the id for {@link #removeRegion}; the same on all ranks
   */
  int addRegion(long bytes, List<Long> bases);

  /** Removes a region; its memory may be unmapped afterwards. */
  void removeRegion(int region);

  /** Why a rank will take no further part: it failed, closed or died. Empty while it is alive. */
  Optional<CollectiveException> peerFailure(int rank);

  /**
   * Whether another rank of this host waits for this one within an operation. False for ranks of
   * other hosts.
   */
  boolean isAwaitedBy(int rank);
}
