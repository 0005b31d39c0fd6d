package io.weft.collectives.nccl;

import io.weft.collectives.Algorithm;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.Operation;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.nccl.EngineGraphs.NcclGraph;
import io.weft.collectives.nccl.HostReductions.NcclReductions;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.Lane.Priority;
import io.weft.device.cuda.BounceBuffers;
import io.weft.device.cuda.CudaEvent;
import io.weft.device.cuda.CudaEvent.CudaMark;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaStream;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One communicator of NCCL with its stream and staging memory. Confined to one thread; other
 * threads only share the reference that stops it.
 *
 * <p>After a failure, NCCL is aborted and the stream is idle before the failure is thrown. Nothing
 * uses the buffers after that.
 */
final class NcclEngine {
  private static final Logger LOG = LoggerFactory.getLogger(NcclEngine.class);
  private static final Duration IDLE_TIMEOUT = Duration.ofSeconds(10);

  /**
   * Limit of the last wait for running work. Work that still runs then keeps its memory for good.
   */
  private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(30);

  private final String name;
  private final OperationAgreement agreement;
  private final NcclWaits waits;
  private final int maxBlocks;
  private final CudaStream stream;
  private final EngineStaging staging;
  private final HostReductions detour;
  private final NcclLaunches launches;
  private final int rank;
  private final int nranks;
  private NcclComm comm;
  private boolean closed;

  /** Whether the device still worked at the end of the last wait; then its memory is not freed. */
  private boolean deviceBusy;

  /** Ends when the device is idle. */
  private final HostEvent idle;

  private final RegisteredWindows windows = new RegisteredWindows();
  private final EngineGraphs graphs = new EngineGraphs();

  NcclEngine(
      String name,
      NcclOptions options,
      OperationAgreement agreement,
      AtomicReference<CollectiveException> stop) {
    this.name = name;
    this.agreement = agreement;
    this.idle = new HostEvent("the idle device of " + name);
    this.rank = agreement.host().rank();
    this.nranks = agreement.host().nranks();
    this.waits = new NcclWaits(name, agreement, stop);
    this.maxBlocks = options.maxBlocks();
    this.stream = CudaStream.open(options.device(), name, Priority.HIGHEST);
    this.staging = new EngineStaging(stream, options.stagingBytes());
    this.launches = new NcclLaunches(name, agreement, stream, staging, waits);
    this.detour = new HostReductions(agreement.host(), stream, staging.bounce());
  }

  /** Connects to the other ranks in NCCL. */
  void connect(byte[] id, Deadline deadline) {
    stream.device().use();
    comm = NcclComm.start(name, id, rank, nranks, maxBlocks);
    waits.useCommunicator(comm);
    try {
      comm.awaitReady("creating a communicator of " + nranks, deadline, waits.watch());
      launches.useCommunicator(comm);
    } catch (RuntimeException e) {
      comm.abort();
      throw e;
    }
  }

  /**
   * Runs collectives in order. Each is launched when all ranks have reached it.
   *
   * @return the slowest algorithm that any of them used, for metrics
   */
  Algorithm runCollectives(List<Operation> operations, Deadline deadline) {
    return guarded(
        operations,
        () -> {
          Algorithm used = Algorithm.NCCL;
          for (Operation each : operations) {
            agreement.checkCollective(each);
            if (NcclReductions.areOfNccl(each)) {
              launches.collective(each, deadline);
            } else {
              launches.finish(operations, deadline);
              detour.run(each, waits.until(operations, deadline));
              used = Algorithm.THROUGH_HOST;
            }
          }
          launches.finish(operations, deadline);
          return used;
        });
  }

  /**
   * Runs sends and receives as one group. The ranks compare sizes while NCCL moves the data.
   *
   * @param after work that the device waits for first
   */
  Algorithm runPairs(List<Operation> operations, List<Event> after, Deadline deadline) {
    return guarded(
        operations,
        () -> {
          after.forEach(work -> CudaEvent.follow(work, stream));
          launches.pairs(operations, deadline);
          launches.finish(operations, deadline);
          return Algorithm.NCCL;
        });
  }

  /**
   * Captures steps whose buffers are in device memory. They are all collectives or all pairs. The
   * ranks agree on each step as in a normal run, because NCCL may have to connect them first.
   */
  NcclGraph capture(List<List<Operation>> steps, boolean collective, Deadline deadline) {
    AtomicReference<NcclGraph> made = new AtomicReference<>();
    Runnable enqueue = () -> steps.forEach(step -> launches.captured(step, collective, deadline));
    guarded(
        () -> {
          made.set(graphs.capture(stream, name, steps, enqueue));
          return Algorithm.NCCL;
        });
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

  /** Ends a graph if it still exists. None of it may be running. */
  void endGraph(NcclGraph graph) {
    graphs.end(graph);
  }

  /**
   * Copies bytes to, from or within this device, and waits for the end.
   *
   * @param use ends when the device does not access the buffers any more
   */
  void copy(TypedBuffer to, TypedBuffer from, HostEvent use, Deadline deadline) {
    try {
      runAlone(
          waits.alone("a copy of " + to.bytes() + " bytes", deadline),
          wait -> copy(to.address(), from.address(), to.bytes(), wait));
    } finally {
      if (deviceBusy) {
        idle.whenReleased(() -> release(use, to, from));
      } else {
        release(use, to, from);
      }
    }
  }

  /** Until here the buffers keep memory reachable that has no other owner. */
  private static void release(HostEvent use, TypedBuffer to, TypedBuffer from) {
    try {
      use.complete();
    } finally {
      Reference.reachabilityFence(to);
      Reference.reachabilityFence(from);
    }
  }

  private void copy(long to, long from, long bytes, BounceBuffers.Wait wait) {
    boolean isToDevice = stream.device().isDeviceMemory(to);
    if (isToDevice && stream.device().isDeviceMemory(from)) {
      stream.copyOnDevice(to, from, bytes);
    } else if (isToDevice) {
      staging.bounce().copyToDevice(to, from, bytes, wait);
    } else {
      staging.bounce().copyToHost(to, from, bytes, wait);
    }
  }

  /** Sets bytes of this device to zero, and waits for the end. */
  void clear(long address, long bytes, Deadline deadline) {
    runAlone(
        waits.alone("zeroing " + bytes + " bytes", deadline), wait -> stream.clear(address, bytes));
  }

  private void runAlone(BounceBuffers.Wait wait, Consumer<BounceBuffers.Wait> work) {
    guarded(
        () -> {
          work.accept(wait);
          try (CudaMark mark = stream.mark()) {
            wait.until(mark);
          }
          return Algorithm.NCCL;
        });
  }

  /** Registers memory of this device as a window, together with the other ranks. */
  void register(DeviceWindow window, Deadline deadline) {
    guarded(
        () -> {
          windows.register(comm, window, deadline, waits.watch());
          return Algorithm.NCCL;
        });
  }

  /** Ends a window if it still exists. */
  void deregister(DeviceWindow window) {
    stream.device().use();
    windows.deregister(comm, window);
  }

  /** A step of the engine. */
  private interface Step {
    Algorithm run();
  }

  private Algorithm guarded(Step step) {
    return guarded(List.of(), step);
  }

  /**
   * Runs a step. If the device does not become idle after a failure, the operations' memory is
   * kept.
   */
  private Algorithm guarded(List<Operation> operations, Step step) {
    stream.device().use();
    try {
      waits.requireOpen();
      return step.run();
    } catch (RuntimeException | Error e) {
      abort();
      if (deviceBusy) {
        RetainedBuffers.keep(operations, idle);
      }
      throw e;
    }
  }

  /** Ends NCCL and all its work on this rank; does nothing the second time. */
  void abort() {
    if (closed || deviceBusy) {
      return;
    }
    stream.device().use();
    graphs.close();
    if (comm != null) {
      comm.abort();
    }
    settle();
  }

  /**
   * Waits for the stream. Memory is freed only when nothing uses it, which may be after this call.
   */
  private void settle() {
    try {
      if (stream.awaitIdle(Deadline.after(IDLE_TIMEOUT))) {
        staging.reset();
        becameIdle();
        return;
      }
      LOG.warn(
          "{}: the device still works {} after an abort; its memory is kept", name, IDLE_TIMEOUT);
    } catch (CudaException e) {
      LOG.warn("{}: the device failed; its staging memory is kept", name, e);
    }
    deviceBusy = true;
  }

  private void becameIdle() {
    launches.release();
    graphs.release();
    idle.complete();
    deviceBusy = false;
  }

  /**
   * Ends NCCL together with the other ranks if all are well; see {@link NcclComm#finish}.
   *
   * @return false if the device still works, so that memory in use is kept for good
   */
  boolean close(boolean healthy, Duration linger) {
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
    if (stream.close(CLOSE_TIMEOUT) && deviceBusy) {
      // The stream is idle after all, so the memory that waits for it is freed too.
      becameIdle();
    }
    if (!deviceBusy) {
      staging.close();
    }
    return !deviceBusy;
  }

  /** Keeps the memory of failed operations while the device may still use it. */
  static final class RetainedBuffers {
    private static final Logger LOG = LoggerFactory.getLogger(RetainedBuffers.class);

    private RetainedBuffers() {}

    /** Keeps all buffers until the event ends; a buffer that is already free is only logged. */
    static void keep(List<Operation> operations, Event until) {
      for (Operation operation : operations) {
        for (TypedBuffer buffer : operation.buffers()) {
          try {
            buffer.owner().usedUntil(until);
          } catch (RuntimeException e) {
            LOG.warn("{} cannot be kept until {}", buffer, until.what(), e);
          }
        }
      }
    }
  }
}
