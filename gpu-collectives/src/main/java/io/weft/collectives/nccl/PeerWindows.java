package io.weft.collectives.nccl;

import io.weft.collectives.AllGather;
import io.weft.collectives.Broadcast;
import io.weft.collectives.Communicator;
import io.weft.collectives.Operation;
import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.nccl.MulticastExchange.MulticastBlocks;
import io.weft.collectives.nccl.OperationAgreement.RaggedReceives;
import io.weft.collectives.nccl.PeerExchange.PeerRows;
import io.weft.device.Deadline;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The shared windows of one engine, and the kernels that write to them. Confined to the engine's
 * thread, except {@link #stop}.
 */
final class PeerWindows {
  /**
   * The place of a buffer: the number of its window, equal on all ranks, and the offset in bytes.
   */
  record Place(long window, long offset) {
    /** The place of a buffer in no window. */
    static final Place NONE = new Place(0, 0);

    /** The place of an empty buffer, which matches any place of the other ranks. */
    static final Place ANYWHERE = new Place(-1, 0);
  }

  private static final Logger LOG = LoggerFactory.getLogger(PeerWindows.class);

  /**
   * The device times out earlier than the host by this, so the host can still name the missing
   * ranks.
   */
  private static final Duration MARGIN = Duration.ofMillis(500);

  private final CudaStream stream;
  private final Map<Long, ReachableMemory> windows = new TreeMap<>();
  private long opened;
  private volatile PeerExchange exchange;
  private MulticastExchange multicast;

  /** The window whose barriers the kernels on the stream use. */
  private PeerWindow used;

  PeerWindows(CudaStream stream) {
    this.stream = stream;
  }

  /** Opens a window together with the other ranks. A refusal is of kind INVALID. */
  PeerWindow open(Communicator hosts, CudaMemory memory, Deadline deadline) {
    PeerWindow window = PeerWindow.open(hosts, memory, stream, deadline);
    windows.put(++opened, window);
    loadBarriers();
    return window;
  }

  /** Opens a multicast window together with the other ranks. A refusal is of kind INVALID. */
  MulticastWindow openMulticast(Communicator hosts, CudaMemory memory, Deadline deadline) {
    MulticastWindow window =
        MulticastWindow.open(hosts, memory, stream, deadline, this::loadMulticast);
    windows.put(++opened, window);
    return window;
  }

  private void loadBarriers() {
    if (exchange == null) {
      exchange = new PeerExchange(stream);
    }
  }

  private void loadMulticast() {
    loadBarriers();
    if (multicast == null) {
      multicast = new MulticastExchange(stream, exchange);
    }
  }

  /** The place where a ragged all-to-all receives. */
  Place place(TypedBuffer buffer) {
    return place(buffer, PeerWindow.class);
  }

  /** The place where an operation receives, if multicast can write it. */
  Place multicastPlace(TypedBuffer buffer) {
    return place(buffer, MulticastWindow.class);
  }

  private Place place(TypedBuffer buffer, Class<? extends ReachableMemory> kind) {
    if (buffer.count() == 0) {
      return Place.ANYWHERE;
    }
    return windows.entrySet().stream()
        .filter(each -> kind.isInstance(each.getValue()))
        .filter(each -> each.getValue().covers(buffer))
        .findFirst()
        .map(each -> new Place(each.getKey(), each.getValue().offset(buffer)))
        .orElse(Place.NONE);
  }

  /**
   * Enqueues the writes of this rank.
   *
   * @param send device address of its rows
   */
  void write(RaggedAllToAll operation, long send, RaggedReceives arrivals, Deadline deadline) {
    long elements = operation.layout().rowElements();
    long rowBytes = elements * operation.send().type().bytes();
    PeerWindow window = (PeerWindow) windows.get(arrivals.window());
    used = window;
    exchange.enqueue(
        window,
        new PeerRows(
            send,
            operation.send().count() / elements,
            rowBytes,
            operation.layout(),
            arrivals.offsets(),
            arrivals.receiveRows()),
        barrierTimeout(deadline));
  }

  /**
   * Enqueues the write of this rank's block to all ranks.
   *
   * @param place of the receive buffer of an all-gather or a broadcast, equal on all ranks
   * @param send device address of its block
   */
  void writeToAll(Operation operation, Place place, long send, Deadline deadline) {
    MulticastWindow window = (MulticastWindow) windows.get(place.window());
    used = window.barrierWindow();
    multicast.enqueue(
        window,
        operation instanceof AllGather gather
            ? new MulticastBlocks(send, gather.send().bytes(), place.offset(), 0, used.nranks())
            : new MulticastBlocks(
                send, operation.bytes(), place.offset(), ((Broadcast) operation).root(), 1),
        barrierTimeout(deadline));
  }

  private static Duration barrierTimeout(Deadline deadline) {
    return Duration.ofNanos(
        Math.max(deadline.remainingNanos() / 2, deadline.remainingNanos() - MARGIN.toNanos()));
  }

  /** Throws what the devices found. Call this when the stream has passed all writes. */
  void check() {
    if (used != null) {
      exchange.check(used);
    }
  }

  /** Frees the memory that writes needed. Call this when the stream has passed them. */
  void release() {
    if (exchange != null) {
      exchange.release();
    }
    used = null;
  }

  /** Ends the waits of the devices for other ranks. */
  void stop() {
    PeerExchange now = exchange;
    if (now != null) {
      now.stop();
    }
  }

  /** Ends a window together with the other ranks. */
  void end(ReachableMemory window, Communicator hosts) {
    if (windows.containsValue(window)) {
      window.close(hosts);
      windows.values().remove(window);
    }
  }

  /** Ends a window on this rank only. The stream must be idle. */
  void closeLocally(ReachableMemory window, Deadline deadline) {
    if (windows.values().remove(window) && !window.closeLocally(deadline)) {
      LOG.warn("Shared memory is kept: another rank may still write to it");
    }
  }

  /** Ends all windows on this rank. The stream must be idle. */
  void close(Deadline deadline) {
    List.copyOf(windows.values()).forEach(window -> closeLocally(window, deadline));
    if (multicast != null) {
      multicast.close();
      multicast = null;
    }
    if (exchange != null) {
      exchange.close();
      exchange = null;
    }
  }
}
