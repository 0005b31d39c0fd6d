package io.weft.collectives.nccl;

import io.weft.collectives.Communicator;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.operation.AllGather;
import io.weft.collectives.operation.Broadcast;
import io.weft.collectives.operation.Operation;
import io.weft.collectives.operation.RaggedAllToAll;
import io.weft.collectives.peer.MulticastBlocks;
import io.weft.collectives.peer.MulticastExchange;
import io.weft.collectives.peer.MulticastWindow;
import io.weft.collectives.peer.PeerExchange;
import io.weft.collectives.peer.PeerRows;
import io.weft.collectives.peer.PeerWindow;
import io.weft.collectives.peer.ReachableMemory;
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
 * The windows of one engine that all ranks reach, and the kernels that write to them. Confined to
 * the engine's thread, but for {@link #stop}.
 */
final class PeerWindows {
  /** Where a buffer lies: the number of its window, the same on all ranks, and bytes in it. */
  record Place(long window, long offset) {
    /** In none. */
    static final Place NONE = new Place(0, 0);

    /** Of an empty buffer, which is wherever the others are. */
    static final Place ANYWHERE = new Place(-1, 0);
  }

  private static final Logger LOG = LoggerFactory.getLogger(PeerWindows.class);

  /** The device gives up before the host does, which then could not say who was missing. */
  private static final Duration MARGIN = Duration.ofMillis(500);

  private final CudaStream stream;
  private final Map<Long, ReachableMemory> windows = new TreeMap<>();
  private long opened;
  private volatile PeerExchange exchange;
  private MulticastExchange multicast;

  /** Whose barriers the kernels on the stream have. */
  private PeerWindow used;

  PeerWindows(CudaStream stream) {
    this.stream = stream;
  }

  /** Opens one, together with the other ranks; a refusal is of kind INVALID. */
  PeerWindow open(Communicator hosts, CudaMemory memory, Deadline deadline) {
    PeerWindow window = PeerWindow.open(hosts, memory, stream, deadline);
    windows.put(++opened, window);
    loadBarriers();
    return window;
  }

  /** Opens one that a single write reaches on all ranks; a refusal is of kind INVALID. */
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

  /** Where a ragged all-to-all receives. */
  Place place(TypedBuffer buffer) {
    return place(buffer, PeerWindow.class);
  }

  /** Where an operation receives that can be written by multicast. */
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
   * @param send address of its rows on the device
   */
  void write(RaggedAllToAll operation, long send, RaggedArrivals arrivals, Deadline deadline) {
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
        patience(deadline));
  }

  /**
   * Enqueues the write of this rank's block to all of them.
   *
   * @param place of an all-gather's or a broadcast's receive buffer, the same on all ranks
   * @param send address of its block on the device
   */
  void writeToAll(Operation operation, Place place, long send, Deadline deadline) {
    MulticastWindow window = (MulticastWindow) windows.get(place.window());
    used = window.lobby();
    multicast.enqueue(
        window,
        operation instanceof AllGather gather
            ? new MulticastBlocks(send, gather.send().bytes(), place.offset(), 0, used.nranks())
            : new MulticastBlocks(
                send, operation.bytes(), place.offset(), ((Broadcast) operation).root(), 1),
        patience(deadline));
  }

  private static Duration patience(Deadline deadline) {
    return Duration.ofNanos(
        Math.max(deadline.remainingNanos() / 2, deadline.remainingNanos() - MARGIN.toNanos()));
  }

  /** When the stream has come behind all writes: throws what the devices found. */
  void check() {
    if (used != null) {
      exchange.check(used);
    }
  }

  /** What writes needed goes back; the stream is behind them. */
  void release() {
    if (exchange != null) {
      exchange.release();
    }
    used = null;
  }

  /** Devices wait for nobody any more. */
  void stop() {
    PeerExchange now = exchange;
    if (now != null) {
      now.stop();
    }
  }

  /** Ends one together with the other ranks. */
  void end(ReachableMemory window, Communicator hosts) {
    if (windows.containsValue(window)) {
      window.close(hosts);
      windows.values().remove(window);
    }
  }

  /** Ends one here; the stream is at rest. */
  void leave(ReachableMemory window, Deadline deadline) {
    if (windows.values().remove(window) && !window.leave(deadline)) {
      LOG.warn("Memory that was shared is kept: another rank may still write to it");
    }
  }

  /** Ends all here; the stream is at rest. */
  void close(Deadline deadline) {
    List.copyOf(windows.values()).forEach(window -> leave(window, deadline));
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
