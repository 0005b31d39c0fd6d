package io.weft.collectives.nccl;

import io.weft.collectives.Communicator;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.device.cuda.CudaMemory;

/**
 * Memory of each rank that the devices of all ranks write to directly. Confined to the thread of
 * its stream.
 */
sealed interface ReachableMemory permits PeerWindow, MulticastWindow {
  /** The memory of this rank. */
  CudaMemory memory();

  /** Whether this rank's memory contains the whole buffer. */
  boolean covers(TypedBuffer buffer);

  /** The offset in bytes from the start of this rank's memory. */
  long offset(TypedBuffer buffer);

  /**
   * Ends it on all ranks together. Their streams must be idle.
   *
   * @param hosts the communicator that opened it
   */
  void close(Communicator hosts);

  /**
   * Ends it on this rank only, whose stream must be idle: tells the others, and waits for them to
   * do the same.
   *
   * @return false if some did not in time; then this rank's memory is kept for good
   */
  boolean closeLocally(Deadline deadline);
}
