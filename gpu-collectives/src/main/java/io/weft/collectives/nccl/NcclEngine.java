package io.weft.collectives.nccl;

import io.weft.collectives.Algorithm;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.collectives.operation.AllReduce;
import io.weft.collectives.operation.Operation;
import io.weft.collectives.operation.RaggedAllToAll;
import io.weft.collectives.operation.RaggedLayout;
import io.weft.collectives.operation.Receive;
import io.weft.collectives.operation.Reduce;
import io.weft.collectives.operation.ReduceScatter;
import io.weft.collectives.operation.Send;
import io.weft.device.Deadline;
import io.weft.device.Lane.Priority;
import io.weft.device.cuda.CudaMark;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
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
  private static final long FIRST_PAUSE_NANOS = 5_000;
  private static final long LONGEST_PAUSE_NANOS = 200_000;
  private static final long WATCH_NANOS = 1_000_000;

  /** What a rank that has closed sent before may still be on its way, also of one that died. */
  private static final long CLOSED_GRACE_NANOS = 1_000_000_000;

  private static final long GRACE_NANOS = 200_000_000;

  private static final Duration REST = Duration.ofSeconds(10);

  private final String name;
  private final Agreement agreement;
  private final AtomicReference<CollectiveException> stop;
  private final CudaStream stream;
  private final CudaMemoryPool pool;
  private final HostDetour detour;
  private final int rank;
  private final int nranks;
  private NcclComm comm;
  private NcclCalls calls;
  private boolean closed;
  private final List<StagedBuffers> inUse = new ArrayList<>();

  NcclEngine(
      String name,
      NcclOptions options,
      Agreement agreement,
      AtomicReference<CollectiveException> stop) {
    this.name = name;
    this.agreement = agreement;
    this.stop = stop;
    this.rank = agreement.host().rank();
    this.nranks = agreement.host().nranks();
    this.stream = CudaStream.open(options.device(), name, Priority.HIGHEST);
    this.pool =
        CudaMemoryPool.open(options.device(), CudaMemoryPool.Kind.DEVICE, options.stagingBytes());
    this.detour = new HostDetour(agreement.host(), stream);
  }

  /** Meets the other ranks in NCCL. */
  void connect(byte[] id, Deadline deadline) {
    stream.device().use();
    comm = NcclComm.start(name, id, rank, nranks);
    try {
      comm.awaitReady("creating a communicator of " + nranks, deadline, new Watch());
      calls = new NcclCalls(comm, stream, rank, nranks);
    } catch (RuntimeException e) {
      comm.abort();
      throw e;
    }
  }

  /** Runs collectives in order; each is launched when all ranks have come to it. */
  Algorithm runCollectives(List<Operation> operations, Deadline deadline) {
    return guarded(
        () -> {
          Algorithm algorithm = Algorithm.NCCL;
          for (Operation each : operations) {
            agreement.onCollective(each);
            if (isReducedByNccl(each)) {
              launch(each, deadline);
            } else {
              finish(operations, deadline);
              detour.run(each, () -> finish(operations, deadline));
              algorithm = Algorithm.THROUGH_HOST;
            }
          }
          finish(operations, deadline);
          return algorithm;
        });
  }

  private static boolean isReducedByNccl(Operation operation) {
    if (operation instanceof AllReduce each) {
      return NcclCalls.reducesExactly(each.send().type(), each.op());
    }
    if (operation instanceof Reduce each) {
      return NcclCalls.reducesExactly(each.send().type(), each.op());
    }
    if (operation instanceof ReduceScatter each) {
      return NcclCalls.reducesExactly(each.send().type(), each.op());
    }
    return true;
  }

  private void launch(Operation operation, Deadline deadline) {
    List<RaggedLayout> ragged =
        operation instanceof RaggedAllToAll each ? agreement.onRagged(each) : List.of();
    if (ragged.isEmpty() && operation.signature().count() == 0) {
      return;
    }
    StagedBuffers staged = staged(List.of(operation));
    calls.collective(operation, staged, ragged);
    comm.awaitReady(operation.signature().toString(), deadline, new Watch());
  }

  /** Runs sends and receives as one group; the ranks compare sizes while NCCL moves the data. */
  Algorithm runPairs(List<Operation> operations, Deadline deadline) {
    return guarded(
        () -> {
          List<Operation> moving = operations.stream().filter(op -> op.bytes() > 0).toList();
          if (!moving.isEmpty()) {
            calls.pairs(moving, staged(moving));
          }
          agreement.onPairs(operations);
          if (!moving.isEmpty()) {
            comm.awaitReady("a group of sends and receives", deadline, new Watch());
          }
          finish(operations, deadline);
          return Algorithm.NCCL;
        });
  }

  private StagedBuffers staged(List<Operation> operations) {
    StagedBuffers staged = new StagedBuffers(stream, pool);
    inUse.add(staged);
    for (Operation each : operations) {
      Placement placement = Placement.of(each, rank);
      staged.place(placement.read(), placement.write());
    }
    return staged;
  }

  /** Waits for NCCL, then for the copies to the host, which do not start after a failure. */
  private void finish(List<Operation> operations, Deadline deadline) {
    awaitStream(operations, deadline);
    boolean copied = false;
    for (StagedBuffers each : inUse) {
      copied |= each.copyBack();
    }
    if (copied) {
      awaitStream(operations, deadline);
    }
    releaseStaging();
  }

  private void releaseStaging() {
    inUse.forEach(StagedBuffers::release);
    inUse.clear();
  }

  private void awaitStream(List<Operation> operations, Deadline deadline) {
    Watch watch = new Watch();
    try (CudaMark mark = stream.mark()) {
      long pause = FIRST_PAUSE_NANOS;
      while (!mark.isReached()) {
        watch.run();
        if (deadline.expired()) {
          throw overdue(operations, deadline);
        }
        LockSupport.parkNanos(pause);
        pause = Math.min(2 * pause, LONGEST_PAUSE_NANOS);
      }
    }
    comm.isReady(name);
  }

  /** All ranks have come to a collective that runs; the peer of a send may not have. */
  private CollectiveException overdue(List<Operation> operations, Deadline deadline) {
    List<Integer> peers =
        operations.stream().flatMap(each -> peer(each).stream()).distinct().sorted().toList();
    return new CollectiveException(
        Kind.TIMEOUT,
        peers,
        operations.get(0).signature()
            + " on rank "
            + rank
            + (peers.isEmpty() ? "" : " with " + CollectiveException.name(peers))
            + " did not end within "
            + deadline
            + " in NCCL");
  }

  private static Optional<Integer> peer(Operation operation) {
    if (operation instanceof Send send) {
      return Optional.of(send.peer());
    }
    return operation instanceof Receive receive ? Optional.of(receive.peer()) : Optional.empty();
  }

  /** A step of the engine. */
  private interface Step {
    Algorithm run();
  }

  private Algorithm guarded(Step step) {
    stream.device().use();
    try {
      return step.run();
    } catch (RuntimeException | Error e) {
      abort();
      throw e;
    }
  }

  /** Ends NCCL here, and whatever runs; does nothing the second time. */
  void abort() {
    if (closed) {
      return;
    }
    stream.device().use();
    if (comm != null) {
      comm.abort();
    }
    Deadline deadline = Deadline.after(REST);
    try (CudaMark mark = stream.mark()) {
      while (!mark.isReached()) {
        if (deadline.expired()) {
          LOG.warn("{}: the device still works {} after an abort; memory is kept", name, REST);
          inUse.clear();
          return;
        }
        LockSupport.parkNanos(LONGEST_PAUSE_NANOS);
      }
      releaseStaging();
    } catch (RuntimeException e) {
      LOG.warn("{}: the device failed after an abort; its staging memory is kept", name, e);
      inUse.clear();
    }
  }

  /** Ends NCCL together with the other ranks, where all is well; see {@link NcclComm#finish}. */
  void close(boolean healthy, Duration linger) {
    closed = true;
    stream.device().use();
    if (comm != null) {
      if (healthy) {
        comm.finish(Deadline.after(linger));
      } else {
        comm.abort();
      }
    }
    stream.close();
    pool.close();
  }

  /** Looks from time to time whether a wait has become pointless. */
  private final class Watch implements Runnable {
    private long last = System.nanoTime();
    private long troubleSince;

    @Override
    public void run() {
      CollectiveException stopped = stop.get();
      if (stopped != null) {
        throw stopped;
      }
      long now = System.nanoTime();
      if (now - last < WATCH_NANOS) {
        return;
      }
      last = now;
      comm.isReady(name);
      Optional<CollectiveException> trouble = agreement.trouble();
      if (trouble.isEmpty()) {
        return;
      }
      if (troubleSince == 0) {
        troubleSince = now;
      } else if (now - troubleSince > graceNanos(trouble.get())) {
        throw trouble.get();
      }
    }

    private static long graceNanos(CollectiveException trouble) {
      return trouble.kind() == Kind.CLOSED ? CLOSED_GRACE_NANOS : GRACE_NANOS;
    }
  }
}
