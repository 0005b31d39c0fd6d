package io.weft.collectives.nccl;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.operation.Operation;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaGraph;
import java.util.List;

/**
 * Operations of one engine as a graph of its device, with a lease on their memory. Confined to the
 * engine's thread.
 *
 * @param graph refers to NCCL's communicator, which must not end earlier
 * @param lease keeps the buffers
 */
record NcclGraph(CudaGraph graph, List<Operation> operations, HostEvent lease) {
  /** Keeps the memory of all buffers until the lease ends. */
  static void hold(List<Operation> operations, HostEvent lease) {
    for (Operation each : operations) {
      for (TypedBuffer buffer : each.buffers()) {
        buffer.owner().usedUntil(lease);
      }
    }
  }

  /** Releases the buffers. Call this when nothing uses them any more. */
  void release() {
    lease.complete();
  }
}
