package io.weft.collectives.nccl;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.Operation;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.nccl.RegisteredMemory.Segment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The segments of {@link RegisteredMemory} that one of NCCL's communicators has registered.
 * Confined to the engine's thread, except for {@link #end}.
 */
final class SegmentRegistrations {
  private static final Logger LOG = LoggerFactory.getLogger(SegmentRegistrations.class);
  private static final AtomicBoolean LOGGED = new AtomicBoolean();

  private final RegisteredMemory memory;
  private final Executor thread;

  /** The registrations; 0 if NCCL declined. */
  private final Map<Segment, Long> handles = new HashMap<>();

  private NcclComm comm;

  /**
   * Creates an object without registrations.
   *
   * @param thread runs work on the engine's thread; throws if that has ended
   */
  SegmentRegistrations(RegisteredMemory memory, Executor thread) {
    this.memory = memory;
    this.thread = thread;
  }

  /** Sets the communicator for the following operations. */
  void useCommunicator(NcclComm ready) {
    comm = ready;
  }

  /** Registers the segments of these operations that are not registered yet. */
  void cover(List<Operation> operations) {
    List<Long> addresses = new ArrayList<>();
    for (Operation operation : operations) {
      for (TypedBuffer buffer : operation.buffers()) {
        if (buffer.bytes() > 0) {
          addresses.add(buffer.address());
        }
      }
    }
    for (Segment segment : memory.around(addresses)) {
      if (!handles.containsKey(segment)) {
        register(segment);
      }
    }
  }

  private void register(Segment segment) {
    long handle = 0;
    String obstacle = "registration is switched off in NCCL's environment";
    try {
      handle = comm.registerSegment(segment.address(), segment.bytes());
    } catch (CollectiveException e) {
      obstacle = e.getMessage();
    }
    handles.put(segment, handle);
    memory.registered(segment, this, handle != 0);
    if (handle == 0 && LOGGED.compareAndSet(false, true)) {
      LOG.warn("{} is used without a registration: {}", segment, obstacle);
    }
  }

  /** Ends one registration on the engine's thread, before the segment is freed. Thread-safe. */
  void end(Segment segment) {
    try {
      thread.execute(() -> endNow(segment));
    } catch (IllegalStateException e) {
      // The engine was closed in the meantime, which ends all registrations.
    }
  }

  private void endNow(Segment segment) {
    Long handle = handles.remove(segment);
    if (handle == null) {
      return;
    }
    try {
      if (handle != 0) {
        comm.deregisterSegment(handle);
      }
    } catch (CollectiveException e) {
      LOG.warn("{} stays registered, so NCCL is aborted", segment, e);
      comm.abort();
    }
    memory.ended(segment, this);
  }

  /**
   * Ends all registrations: before the communicator ends, or after its abort once the device is
   * idle.
   */
  void endAll() {
    List.copyOf(handles.keySet()).forEach(this::endNow);
  }
}
