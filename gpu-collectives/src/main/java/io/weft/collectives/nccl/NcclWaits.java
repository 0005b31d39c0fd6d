package io.weft.collectives.nccl;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Operation;
import io.weft.collectives.Receive;
import io.weft.collectives.Send;
import io.weft.device.Deadline;
import io.weft.device.cuda.BounceBuffers;
import io.weft.device.cuda.CudaEvent.CudaMark;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;

/**
 * Waits for NCCL and the device, and ends a wait that has no purpose any more. Confined to the
 * engine's thread; other threads only share the reference that stops it.
 */
final class NcclWaits {
  private static final long MAX_PAUSE_NANOS = 200_000;
  private static final long WATCH_NANOS = 1_000_000;

  /** Data that a closed or dead rank sent earlier may still arrive during this time. */
  private static final long CLOSED_GRACE_NANOS = 1_000_000_000;

  private static final long GRACE_NANOS = 200_000_000;

  private final String name;
  private final OperationAgreement agreement;
  private final AtomicReference<CollectiveException> stop;
  private NcclComm comm;

  NcclWaits(String name, OperationAgreement agreement, AtomicReference<CollectiveException> stop) {
    this.name = name;
    this.agreement = agreement;
    this.stop = stop;
  }

  /** Sets the communicator whose errors end the following waits. */
  void useCommunicator(NcclComm started) {
    comm = started;
  }

  /**
   * Throws if the communicator was aborted, as by work of another thread that came before this:
   * NCCL must not get its handle any more.
   */
  void requireOpen() {
    if (comm.hasEnded()) {
      CollectiveException cause = stop.get();
      throw cause != null
          ? cause
          : new CollectiveException(Kind.ABORTED, List.of(), name + " was aborted");
    }
  }

  /** The check that a wait repeats; it throws when the wait has no purpose any more. */
  Runnable watch() {
    return new Watch();
  }

  /** Waits for marks after these operations. */
  BounceBuffers.Wait until(List<Operation> operations, Deadline deadline) {
    return mark -> await(mark, operations, deadline);
  }

  /** Waits for marks after work of this rank alone; the other ranks may have ended. */
  BounceBuffers.Wait alone(String what, Deadline deadline) {
    Runnable stopped =
        () -> {
          if (stop.get() != null) {
            throw stop.get();
          }
        };
    return mark -> await(mark, stopped, deadline, () -> overdue(what, deadline));
  }

  private void await(CudaMark mark, List<Operation> operations, Deadline deadline) {
    await(mark, watch(), deadline, () -> overdue(operations, deadline));
  }

  private static void await(
      CudaMark mark, Runnable watch, Deadline deadline, Supplier<CollectiveException> overdue) {
    long start = System.nanoTime();
    while (!mark.isReached()) {
      watch.run();
      if (deadline.expired()) {
        throw overdue.get();
      }
      NcclComm.pause(start, MAX_PAUSE_NANOS);
    }
  }

  private CollectiveException overdue(String what, Deadline deadline) {
    int rank = agreement.host().rank();
    return new CollectiveException(
        Kind.TIMEOUT,
        List.of(rank),
        "%s on rank %d did not end within %s on its GPU".formatted(what, rank, deadline));
  }

  /** All ranks have reached a running collective; the peer of a send may not have. */
  private CollectiveException overdue(List<Operation> operations, Deadline deadline) {
    List<Integer> peers =
        operations.stream().flatMap(each -> peer(each).stream()).distinct().sorted().toList();
    return new CollectiveException(
        Kind.TIMEOUT,
        peers,
        operations.get(0).signature()
            + " on rank "
            + agreement.host().rank()
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

  /** Checks from time to time whether a wait has lost its purpose. */
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
      Optional<CollectiveException> trouble = agreement.peerFailure();
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
