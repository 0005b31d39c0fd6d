package io.weft.collectives.nccl;

import io.weft.collectives.Algorithm;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.nccl.PeerWindows.Place;
import io.weft.collectives.operation.Operation;
import io.weft.collectives.peer.MulticastWindow;
import io.weft.collectives.peer.PeerWindow;
import io.weft.collectives.peer.ReachableMemory;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.Lane.Priority;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.StreamOrder;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One communicator of NCCL with its stream and staging memory. Confined to one thread; only the
 * reference by which it is stopped is shared.
 *
 * <p>After a failure NCCL is aborted and the stream has come to rest before the failure is thrown:
 * then nothing touches the buffers any more.
 */
final class NcclEngine {
  private static final Logger LOG = LoggerFactory.getLogger(NcclEngine.class);
  private static final Duration REST = Duration.ofSeconds(10);

  /** The last look at what still runs: what then does keeps its memory for good. */
  private static final Duration CLOSING = Duration.ofSeconds(30);

  /** What still runs when an operation has failed does so for ever, or ends within this. */
  private static final Duration QUIET = Duration.ofMillis(200);

  private final String name;
  private final Agreement agreement;
  private final NcclWaits waits;
  private final boolean shrinks;
  private final CudaStream stream;
  private final EngineStaging staging;
  private final HostDetour detour;
  private final NcclLaunches launches;
  private final int rank;
  private final int nranks;
  private NcclComm comm;
  private boolean closed;

  /** Whether the device still worked when it was last waited for: what it uses is not freed. */
  private boolean restless;

  /** Ends when it does not any more. */
  private final HostEvent rest;

  private final RegisteredWindows windows = new RegisteredWindows();
  private final EngineGraphs graphs = new EngineGraphs();
  private final PeerWindows peers;

  NcclEngine(
      String name,
      NcclOptions options,
      Agreement agreement,
      AtomicReference<CollectiveException> stop) {
    this.name = name;
    this.agreement = agreement;
    this.rest = new HostEvent("the rest of " + name);
    this.rank = agreement.host().rank();
    this.nranks = agreement.host().nranks();
    this.waits = new NcclWaits(name, agreement, stop);
    this.shrinks = options.shrinks();
    this.stream = CudaStream.open(options.device(), name, Priority.HIGHEST);
    this.staging = new EngineStaging(stream, options.stagingBytes());
    this.peers = new PeerWindows(stream);
    this.launches = new NcclLaunches(name, agreement, stream, staging, waits, peers);
    this.detour = new HostDetour(agreement.host(), stream, staging.bounce());
  }

  /** Meets the other ranks in NCCL. */
  void connect(byte[] id, Deadline deadline) {
    stream.device().use();
    connect(NcclComm.start(name, id, rank, nranks), deadline);
  }

  /** Takes over a communicator that is being made. */
  void connect(NcclComm started, Deadline deadline) {
    stream.device().use();
    comm = started;
    waits.on(comm);
    try {
      comm.awaitReady("creating a communicator of " + nranks, deadline, waits.watch());
      launches.on(comm);
    } catch (RuntimeException e) {
      comm.abort();
      throw e;
    }
  }

  /** Runs collectives in order; each is launched when all ranks have come to it. */
  Algorithm runCollectives(List<Operation> operations, Deadline deadline) {
    return guarded(
        operations,
        () -> {
          Set<Algorithm> used = EnumSet.noneOf(Algorithm.class);
          for (Operation each : operations) {
            Place receive = agreement.onCollective(each, launches.multicastPlace(each));
            if (ExactReductions.areOfNccl(each)) {
              used.add(launches.collective(each, receive, deadline));
            } else {
              launches.finish(operations, deadline);
              detour.run(each, waits.until(operations, deadline));
              used.add(Algorithm.THROUGH_HOST);
            }
          }
          launches.finish(operations, deadline);
          return ofGroup(used);
        });
  }

  /** By how a group is counted: as the slowest way that something in it went. */
  private static Algorithm ofGroup(Set<Algorithm> used) {
    return Stream.of(Algorithm.THROUGH_HOST, Algorithm.NCCL, Algorithm.MULTICAST)
        .filter(used::contains)
        .findFirst()
        .orElse(Algorithm.NCCL);
  }

  /**
   * Runs sends and receives as one group; the ranks compare sizes while NCCL moves the data.
   *
   * @param after work that the device waits for before
   */
  Algorithm runPairs(List<Operation> operations, List<Event> after, Deadline deadline) {
    return guarded(
        operations,
        () -> {
          after.forEach(work -> StreamOrder.follow(work, stream));
          launches.pairs(operations, deadline);
          launches.finish(operations, deadline);
          return Algorithm.NCCL;
        });
  }

  /**
   * Captures steps, which are all of collectives or all of pairs, in memory of the device. The
   * ranks agree on each as when it runs: NCCL may have to connect them first.
   */
  NcclGraph capture(List<List<Operation>> steps, boolean collective, Deadline deadline) {
    AtomicReference<NcclGraph> made = new AtomicReference<>();
    Runnable enqueue = () -> steps.forEach(step -> launches.captured(step, collective, deadline));
    launches.capturing(true);
    try {
      guarded(
          () -> {
            made.set(graphs.capture(stream, name, steps, enqueue));
            return Algorithm.NCCL;
          });
    } finally {
      launches.capturing(false);
    }
    return made.get();
  }

  /** Runs a graph once, together with the other ranks. */
  void replay(NcclGraph graph, Deadline deadline) {
    guarded(
        graph.operations(),
        () -> {
          graphs.launch(graph, stream);
          launches.finish(graph.operations(), deadline);
          return Algorithm.NCCL;
        });
  }

  /** Ends a graph that is still there; nothing of it runs. */
  void endGraph(NcclGraph graph) {
    graphs.end(graph);
  }

  /** Splits NCCL's communicator, together with the other ranks; see {@link NcclComm#split}. */
  void split(List<NcclComm> parts, int color, int key, Deadline deadline) {
    guarded(
        () -> {
          NcclComm part = comm.split(name + "-part", color, key, deadline, waits.watch());
          if (part != null) {
            parts.add(part);
          }
          return Algorithm.NCCL;
        });
  }

  /** Whether what broke was kept, and nothing runs on it any more. */
  boolean isShrinkable() {
    return comm != null && !comm.isGone() && !restless;
  }

  /** Makes what is left of NCCL's communicator, which broke; see {@link NcclComm#shrink}. */
  NcclComm shrink(List<Integer> excluded, Deadline deadline, Runnable watch) {
    stream.device().use();
    return comm.shrink(name + "-rest", excluded, deadline, watch);
  }

  /** Registers memory of this device as a window, together with the other ranks. */
  void register(DeviceWindow window, Deadline deadline) {
    guarded(
        () -> {
          windows.register(comm, window, deadline, waits.watch());
          return Algorithm.NCCL;
        });
  }

  /** Ends a window that is still there. */
  void deregister(DeviceWindow window) {
    stream.device().use();
    windows.deregister(comm, window);
  }

  /** Has all ranks reach memory of this device; a refusal, of kind INVALID, breaks nothing. */
  PeerWindow share(CudaMemory memory, Deadline deadline) {
    stream.device().use();
    return peers.open(agreement.host(), memory, deadline);
  }

  /** Has one write reach memory of all ranks; a refusal, of kind INVALID, breaks nothing. */
  MulticastWindow shareByMulticast(CudaMemory memory, Deadline deadline) {
    stream.device().use();
    return peers.openMulticast(agreement.host(), memory, deadline);
  }

  /** Ends what all ranks reach, together with them. */
  void unshare(ReachableMemory window) {
    guarded(
        () -> {
          peers.end(window, agreement.host());
          return Algorithm.NCCL;
        });
  }

  /** Ends what all ranks reach on this one. */
  void leave(ReachableMemory window, Duration linger) {
    stream.device().use();
    if (!restless) {
      peers.leave(window, Deadline.after(linger));
    }
  }

  /** A step of the engine. */
  private interface Step {
    Algorithm run();
  }

  private Algorithm guarded(Step step) {
    return guarded(List.of(), step);
  }

  /** Where the device does not come to rest after a failure, the operations' memory is kept. */
  private Algorithm guarded(List<Operation> operations, Step step) {
    stream.device().use();
    try {
      return step.run();
    } catch (RuntimeException | Error e) {
      abort();
      if (restless) {
        KeptBuffers.keep(operations, rest);
      }
      throw e;
    }
  }

  /** Ends NCCL here, and whatever runs; does nothing the second time. */
  void abort() {
    if (closed || restless) {
      return;
    }
    stream.device().use();
    graphs.close();
    peers.stop();
    if (comm != null && !keep()) {
      comm.abort();
    }
    settle();
  }

  /** Whether nothing runs on NCCL's communicator any more though it was not aborted. */
  private boolean keep() {
    if (!shrinks || comm.isGone() || NcclLibrary.loaded().whyNoShrinking().isPresent()) {
      return false;
    }
    if (NcclLibrary.loaded().revokes()) {
      return comm.revoke(Deadline.after(REST));
    }
    try {
      return !comm.isBusy() && stream.awaitRest(Deadline.after(QUIET));
    } catch (CudaException e) {
      LOG.warn("{}: the device failed, so NCCL is aborted", name, e);
      return false;
    }
  }

  /**
   * Waits for the stream; memory goes back only when nothing uses it any more, which may be later
   * than the first look.
   */
  private void settle() {
    try {
      if (stream.awaitRest(Deadline.after(REST))) {
        staging.reset();
        rested();
        return;
      }
      LOG.warn("{}: the device still works {} after an abort; its memory is kept", name, REST);
    } catch (CudaException e) {
      LOG.warn("{}: the device failed; its staging memory is kept", name, e);
    }
    restless = true;
  }

  private void rested() {
    launches.release();
    graphs.release();
    rest.complete();
    restless = false;
  }

  /** Ends NCCL together with the other ranks, where all is well; see {@link NcclComm#finish}. */
  void close(boolean healthy, Duration linger) {
    closed = true;
    stream.device().use();
    graphs.close();
    if (comm != null) {
      if (healthy) {
        windows.end(comm);
        comm.finish(Deadline.after(linger));
      } else {
        comm.abort();
      }
    }
    settle();
    if (!restless) {
      peers.close(Deadline.after(linger));
    }
    if (stream.close(CLOSING) && restless) {
      // It has come to rest after all, so what waits for that goes back too.
      rested();
    }
    if (!restless) {
      staging.close();
    }
  }
}
