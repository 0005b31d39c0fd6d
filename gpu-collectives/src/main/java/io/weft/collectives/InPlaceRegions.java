package io.weft.collectives;

import io.weft.collectives.fault.CollectiveException;
import java.util.List;
import java.util.Optional;

/**
 * What a communicator offers beyond {@link Communicator} where ranks map each other's memory: its
 * collectives then work in place on buffers that lie in a region. Thread-safe.
 */
public interface InPlaceRegions {
  /**
   * Adds a run of bytes that every rank has. All ranks add and remove the same regions in the same
   * order, between operations.
   *
   * @param bytes the same on all ranks
   * @param bases where each rank's run is mapped in this process, by rank
   * @return what {@link #removeRegion} wants; the same on all ranks
   */
  int addRegion(long bytes, List<Long> bases);

  /** Forgets a region; its memory may be unmapped afterwards. */
  void removeRegion(int region);

  /** Why nothing more is to be expected of a rank: failed, closed or dead. Empty while it lives. */
  Optional<CollectiveException> peerFailure(int rank);
}
