package io.weft.shuffle.fetch;

import static io.weft.shuffle.peer.ExchangeCounter.HELD_BACK_NANOS;
import static io.weft.shuffle.peer.ExchangeCounter.REQUESTS;
import static io.weft.shuffle.peer.ExchangeCounter.REQUESTS_HELD_BACK;

import io.weft.memory.ArenaFullException;
import io.weft.memory.Extent;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import io.weft.shuffle.fetch.BlockFetchException.ReadPath;
import io.weft.shuffle.fetch.BlockReaders.FetchContext;
import io.weft.shuffle.fetch.PeerQueue.DeliveryState;
import io.weft.shuffle.fetch.PeerQueue.EventSignal;
import io.weft.shuffle.fetch.PeerQueue.FetchPlan;
import io.weft.shuffle.net.OpenBlocks;
import io.weft.shuffle.peer.ExchangeCounters;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/**
 * The outstanding requests of one reader, and the limit on their bytes. Owns their memory. For the
 * reader's thread.
 */
final class InFlightWindow implements AutoCloseable {
  private final FetchContext access;
  private final ReadTrace trace;
  private final boolean retained;
  private final Consumer<DeliveryState> events;
  private final Map<DeliveryState, Held> held = new HashMap<>();
  private final List<DeliveryState> kept = new ArrayList<>();
  private final ReceiveShare share;

  /** The result of an attempt to send a request. */
  enum Sent {
    YES,
    /** The reader is at its limit, or there is no memory. */
    NO_ROOM,
    /** The peer is at its limit. Another peer may have room. */
    NO_ROOM_FOR_PEER
  }

  /** The memory of a request and whether it is a retry. */
  private static final class Held {
    private long bytes;
    private final boolean second;

    Held(long bytes, boolean second) {
      this.bytes = bytes;
      this.second = second;
    }
  }

  /**
   * Starts empty.
   *
   * @param retained whether the memory is kept until {@link #close()}
   * @param events called on any thread when a request has an event
   */
  InFlightWindow(
      FetchContext access, ReadTrace trace, boolean retained, Consumer<DeliveryState> events) {
    this.access = access;
    this.trace = trace;
    this.retained = retained;
    this.events = events;
    this.share = new ReceiveShare(access.budget(), access.counters());
  }

  /**
   * Sends a peer's next request, unless it must wait for memory.
   *
   * @throws UncheckedIOException if there is no memory although no request is outstanding
   */
  Sent send(PeerQueue queue) {
    FetchPlan plan = queue.plan(access.limits().requestBytes());
    boolean waitable = hasOutstanding();
    if (waitable && share.bytes() + plan.bytes() > access.limits().maxBytesInFlight()) {
      return Sent.NO_ROOM;
    }
    if (isPeerFull(queue, plan.bytes())) {
      return Sent.NO_ROOM_FOR_PEER;
    }
    Extent extent = reserve(plan, waitable);
    if (extent == null) {
      return Sent.NO_ROOM;
    }
    queue.incoming().add(start(plan, extent, false, System.nanoTime()));
    queue.sent();
    return Sent.YES;
  }

  /**
   * Whether the peer is at its limit. A request above the limit is sent when no other is
   * outstanding.
   */
  private boolean isPeerFull(PeerQueue queue, long wanted) {
    long bytes = wanted;
    boolean waitable = false;
    for (Map.Entry<DeliveryState, Held> entry : held.entrySet()) {
      if (entry.getKey().request().plan().queue() == queue) {
        bytes += entry.getValue().bytes;
        waitable |= !entry.getKey().isDelivered();
      }
    }
    return waitable && bytes > access.limits().maxPeerBytesInFlight();
  }

  /**
   * Reserves memory and budget for a request. Returns null if there is not enough now, but will be
   * after an outstanding request.
   */
  private Extent reserve(FetchPlan plan, boolean waitable) {
    if (!share.tryReserve(plan.bytes(), waitable)) {
      return null;
    }
    Extent extent = null;
    try {
      extent = allocate(plan, waitable);
    } finally {
      share.change((extent == null ? 0 : extent.length()) - plan.bytes());
    }
    return extent;
  }

  private Extent allocate(FetchPlan plan, boolean waitable) {
    try {
      SharedArena arena = access.arena();
      if (waitable) {
        return arena.tryAllocate(plan.bytes(), Use.DEFERRABLE);
      }
      return arena.allocate(plan.bytes(), retained ? Use.RETAINED : Use.TRANSIENT);
    } catch (InterruptedIOException e) {
      throw access.failures().interrupted("blocks " + ReadPath.REMOTE.phrase());
    } catch (ArenaFullException e) {
      if (waitable) {
        return null;
      }
      // A local problem: the peer's blocks are good and must not be computed again.
      throw new UncheckedIOException(
          "no memory to receive blocks of " + plan.queue().peer() + ": " + e.getMessage(), e);
    }
  }

  private boolean hasOutstanding() {
    return held.keySet().stream().anyMatch(state -> !state.isDelivered());
  }

  /**
   * Retries the rest of a failed request.
   *
   * @throws UncheckedIOException as {@link #send} does
   */
  DeliveryState retry(DeliveryState failed) {
    FetchRequest request = failed.request();
    FetchPlan rest = request.plan().rest(request.answer(), request.arrivedChunks());
    Extent extent = reserve(rest, false);
    return start(rest, extent, true, System.nanoTime() - request.stalledNanos());
  }

  /**
   * Retries a postponed request. Returns null if there is no memory for it now.
   *
   * @param needed whether the reader can make progress only by this request
   * @throws UncheckedIOException as {@link #send} does
   */
  DeliveryState resume(PostponedRequest postponed, boolean needed) {
    FetchRequest busy = postponed.refused().request();
    Extent extent = reserve(busy.plan(), !needed && hasOutstanding());
    // The reader may come back long after the delay. That is not the peer's time.
    long since = System.nanoTime() - postponed.delayNanos() - busy.stalledNanos();
    return extent == null ? null : start(busy.plan(), extent, postponed.second(), since);
  }

  private DeliveryState start(FetchPlan plan, Extent extent, boolean second, long since) {
    EventSignal signal = new EventSignal();
    // Set before the request starts, so before the first signal.
    DeliveryState[] itself = new DeliveryState[1];
    Consumer<FetchRequest> onChange =
        changed -> {
          if (signal.raise()) {
            events.accept(itself[0]);
          }
        };
    OpenBlocks message =
        plan.message(extent.length(), access.limits().checksums(), access.compression());
    FetchRequest request =
        new FetchRequest(
            plan,
            message,
            access.arena(),
            extent,
            access.key(),
            access.compression().link(),
            onChange,
            since,
            access.limits().timeout());
    DeliveryState incoming = new DeliveryState(request, signal);
    itself[0] = incoming;
    held.put(incoming, new Held(extent.length(), second));
    access.counters().increment(REQUESTS);
    request.start(access.client().connect(plan.queue().peer()), trace.fetch(plan));
    return incoming;
  }

  /** Whether a request is a retry of a failed one. */
  boolean isSecondAttempt(DeliveryState incoming) {
    return held.get(incoming).second;
  }

  /** Frees the memory that an answer does not need. */
  void trim(DeliveryState incoming) {
    incoming.request().trim();
    Held memory = held.get(incoming);
    long now = incoming.request().heldBytes();
    share.change(now - memory.bytes);
    memory.bytes = now;
  }

  /** Frees the memory of a request. */
  void release(DeliveryState incoming) {
    Held memory = held.remove(incoming);
    if (memory != null) {
      incoming.request().close();
      share.change(-memory.bytes);
    }
  }

  /**
   * Keeps the memory of a finished request until {@link #close()}. It no longer counts for the
   * limit.
   */
  void keep(DeliveryState delivered) {
    share.change(-held.remove(delivered).bytes);
    kept.add(delivered);
  }

  /** The outstanding request whose last progress is the oldest. */
  Optional<DeliveryState> slowest() {
    long now = System.nanoTime();
    return held.keySet().stream()
        .filter(state -> !state.request().isEnded())
        .max(Comparator.comparingLong(state -> now - state.request().lastProgress()));
  }

  /** Frees all memory. Bytes that still arrive are dropped. */
  @Override
  public void close() {
    held.keySet().forEach(state -> state.request().close());
    held.clear();
    kept.forEach(state -> state.request().close());
    kept.clear();
    share.close();
  }

  /**
   * Limits the bytes that all readers of an executor have requested and not yet used. A reader
   * without an outstanding request never waits: it gets one request even above the limit. So
   * readers cannot deadlock, and the limit is exceeded by at most one request per reader.
   * Thread-safe.
   */
  static final class ReceiveBudget {
    private final long maxBytes;
    private final AtomicLong bytes = new AtomicLong();

    /** Starts empty. */
    ReceiveBudget(long maxBytes) {
      this.maxBytes = maxBytes;
    }

    /**
     * Reserves bytes if enough are left.
     *
     * @return whether it reserved them
     */
    boolean tryReserve(long wanted) {
      long now = bytes.get();
      while (now + wanted <= maxBytes) {
        if (bytes.compareAndSet(now, now + wanted)) {
          return true;
        }
        now = bytes.get();
      }
      return false;
    }

    /** Reserves bytes even above the limit. */
    void reserve(long wanted) {
      bytes.addAndGet(wanted);
    }

    /** Returns reserved bytes. */
    void release(long taken) {
      bytes.addAndGet(-taken);
    }

    /** The bytes that are reserved now. */
    long bytes() {
      return bytes.get();
    }
  }

  /**
   * The bytes that one reader has reserved from its executor's {@link ReceiveBudget}. Also measures
   * how long its next request waits for the budget. For the reader's thread.
   */
  static final class ReceiveShare implements AutoCloseable {
    private final ReceiveBudget budget;
    private final ExchangeCounters counters;
    private long bytes;
    private boolean heldBack;
    private long since;

    /** Starts with no bytes. */
    ReceiveShare(ReceiveBudget budget, ExchangeCounters counters) {
      this.budget = budget;
      this.counters = counters;
    }

    /**
     * Reserves bytes for a request.
     *
     * @param waitable whether the reader has outstanding requests and retries after one of them
     * @return whether the request may be sent
     */
    boolean tryReserve(long wanted, boolean waitable) {
      if (waitable && !budget.tryReserve(wanted)) {
        holdBack();
        return false;
      }
      if (!waitable) {
        budget.reserve(wanted);
      }
      bytes += wanted;
      endHoldBack();
      return true;
    }

    private void holdBack() {
      if (!heldBack) {
        heldBack = true;
        since = System.nanoTime();
        counters.increment(REQUESTS_HELD_BACK);
      }
    }

    private void endHoldBack() {
      if (heldBack) {
        heldBack = false;
        counters.add(HELD_BACK_NANOS, System.nanoTime() - since);
      }
    }

    /** Changes the reserved bytes of a request by this number, which may be negative. */
    void change(long more) {
      budget.reserve(more);
      bytes += more;
    }

    /** The bytes that are reserved now. */
    long bytes() {
      return bytes;
    }

    /** Returns all bytes. */
    @Override
    public void close() {
      change(-bytes);
      endHoldBack();
    }
  }

  /**
   * A request that a busy peer refused.
   *
   * @param refused keeps its place in the queue, but no memory
   * @param second whether it is a retry
   * @param refusedAt time of the refusal, by {@link System#nanoTime()}
   * @param delayNanos delay before it is sent again
   */
  record PostponedRequest(DeliveryState refused, boolean second, long refusedAt, long delayNanos) {
    static PostponedRequest now(DeliveryState refused, boolean second) {
      long delay = TimeUnit.MILLISECONDS.toNanos(refused.request().retryAfterMillis());
      return new PostponedRequest(refused, second, System.nanoTime(), delay);
    }

    /** The nanoseconds until it is due; 0 or less if it is due now. */
    long left(long now) {
      return refusedAt + delayNanos - now;
    }
  }
}
