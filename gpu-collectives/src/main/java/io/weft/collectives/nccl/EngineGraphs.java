package io.weft.collectives.nccl;

import io.weft.collectives.Operation;
import io.weft.collectives.TypedBuffer;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaGraph;
import io.weft.device.cuda.CudaStream;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The graphs of one engine and the leases on their memory. Confined to the engine's thread. */
final class EngineGraphs {
  private static final Logger LOG = LoggerFactory.getLogger(EngineGraphs.class);

  private final Set<NcclGraph> graphs = new LinkedHashSet<>();

  /** Leases on the memory of failed captures: NCCL may enqueue work for them until it has ended. */
  private final List<HostEvent> failed = new ArrayList<>();

  /**
   * Captures what the given call enqueues. If that fails, the memory is kept until {@link
   * #release}.
   *
   * @param enqueue enqueues these steps on the stream
   */
  NcclGraph capture(
      CudaStream stream, String engine, List<List<Operation>> steps, Runnable enqueue) {
    List<Operation> operations = steps.stream().flatMap(List::stream).toList();
    String what = steps.size() + " steps of " + engine;
    HostEvent lease = new HostEvent("a graph of " + what);
    try {
      NcclGraph.hold(operations, lease);
      NcclGraph made = new NcclGraph(CudaGraph.capture(stream, what, enqueue), operations, lease);
      graphs.add(made);
      return made;
    } catch (RuntimeException | Error e) {
      failed.add(lease);
      throw e;
    }
  }

  /** Enqueues the graph once more. */
  void launch(NcclGraph graph, CudaStream stream) {
    if (!graphs.contains(graph)) {
      throw new IllegalStateException(graph.graph() + " has ended");
    }
    graph.graph().launch(stream);
  }

  /** Ends a graph if it still exists. None of it may be running. */
  void end(NcclGraph graph) {
    if (graphs.remove(graph)) {
      graph.graph().close();
      graph.release();
    }
  }

  /**
   * Ends all graphs, even if work is running. Call this before NCCL ends, because NCCL waits for
   * the graphs without a limit.
   */
  void close() {
    for (NcclGraph each : graphs) {
      try {
        each.graph().close();
      } catch (CudaException e) {
        LOG.warn("{} failed to end", each.graph(), e);
      }
    }
  }

  /** Releases the memory of all graphs. Call this when nothing runs any more. */
  void release() {
    graphs.forEach(NcclGraph::release);
    graphs.clear();
    failed.forEach(HostEvent::complete);
    failed.clear();
  }

  /**
   * Operations of one engine as a graph of its device, with a lease on their memory. Confined to
   * the engine's thread.
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
}
