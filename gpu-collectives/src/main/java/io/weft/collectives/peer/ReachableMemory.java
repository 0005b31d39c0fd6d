package io.weft.collectives.peer;

import io.weft.collectives.Communicator;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.device.cuda.CudaMemory;

/**
 * Memory of each rank that the devices of all ranks write to by themselves, in one way or another.
 * Confined to the thread of its stream.
 */
public sealed interface ReachableMemory permits PeerWindow, MulticastWindow {
  /** This rank's own. */
  CudaMemory memory();

  /** Whether all of a buffer lies in this rank's memory. */
  boolean covers(TypedBuffer buffer);

  /** Bytes from the start of this rank's memory. */
  long offset(TypedBuffer buffer);

  /**
   * Ends it on all ranks together, whose streams are at rest.
   *
   * @param hosts as when it was opened
   */
  void close(Communicator hosts);

  /**
   * Ends it on this rank alone, whose stream is at rest: tells the others, and waits for them to do
   * the same.
   *
   * @return false when some did not in time, so that this rank's memory is kept for good
   */
  boolean leave(Deadline deadline);
}
