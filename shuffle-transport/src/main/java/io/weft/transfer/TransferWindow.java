package io.weft.transfer;

import static io.weft.metrics.ExchangeCounter.REQUESTS;

import io.weft.memory.ArenaFullException;
import io.weft.memory.Extent;
import io.weft.memory.SpillPolicy.Use;
import io.weft.wire.OpenBlocks;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * The outstanding requests of one reader, and the limit on their bytes. Owns their memory. For the
 * reader's thread.
 */
final class TransferWindow implements AutoCloseable {
  private final RemoteAccess access;
  private final boolean retained;
  private final Consumer<IncomingBlocks> events;
  private final Map<IncomingBlocks, Held> held = new HashMap<>();
  private final List<IncomingBlocks> kept = new ArrayList<>();
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
  TransferWindow(RemoteAccess access, boolean retained, Consumer<IncomingBlocks> events) {
    this.access = access;
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
    TransferPlan plan = queue.plan(access.limits().requestBytes());
    boolean waitable = hasOutstanding();
    if (waitable && share.bytes() + plan.room() > access.limits().maxBytesInFlight()) {
      return Sent.NO_ROOM;
    }
    if (isPeerFull(queue, plan.room())) {
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
    for (Map.Entry<IncomingBlocks, Held> entry : held.entrySet()) {
      if (entry.getKey().transfer().plan().queue() == queue) {
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
  private Extent reserve(TransferPlan plan, boolean waitable) {
    if (!share.take(plan.room(), waitable)) {
      return null;
    }
    Extent extent = null;
    try {
      extent = allocate(plan, waitable);
    } finally {
      share.change((extent == null ? 0 : extent.length()) - plan.room());
    }
    return extent;
  }

  private Extent allocate(TransferPlan plan, boolean waitable) {
    try {
      Use use = retained ? Use.RETAINED : Use.TRANSIENT;
      return access.arena().allocate(plan.room(), waitable ? Use.DEFERRABLE : use);
    } catch (InterruptedIOException e) {
      throw access.failures().interrupted("blocks " + BlockPath.REMOTE.phrase());
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
    return held.keySet().stream().anyMatch(transfer -> !transfer.isDelivered());
  }

  /**
   * Retries the rest of a failed request.
   *
   * @throws UncheckedIOException as {@link #send} does
   */
  IncomingBlocks sendAgain(IncomingBlocks failed) {
    BlockTransfer transfer = failed.transfer();
    TransferPlan rest = transfer.plan().rest(transfer.answer(), transfer.arrivedChunks());
    return start(rest, reserve(rest, false), true, transfer.lastProgress());
  }

  /**
   * Retries a postponed request. Returns null if there is no memory for it now.
   *
   * @param needed whether the reader can make progress only by this request
   * @throws UncheckedIOException as {@link #send} does
   */
  IncomingBlocks resume(Postponed postponed, boolean needed) {
    BlockTransfer busy = postponed.refused().transfer();
    Extent extent = reserve(busy.plan(), !needed && hasOutstanding());
    return extent == null
        ? null
        : start(busy.plan(), extent, postponed.second(), busy.lastProgress());
  }

  private IncomingBlocks start(TransferPlan plan, Extent extent, boolean second, long since) {
    Signal signal = new Signal();
    // Set before the request starts, so before the first signal.
    IncomingBlocks[] itself = new IncomingBlocks[1];
    Consumer<BlockTransfer> onChange =
        transfer -> {
          if (signal.raise()) {
            events.accept(itself[0]);
          }
        };
    OpenBlocks message = plan.message(extent.length(), access.limits());
    BlockTransfer transfer =
        new BlockTransfer(
            plan,
            message,
            access.arena(),
            extent,
            access.key(),
            onChange,
            since,
            access.limits().timeout());
    IncomingBlocks incoming = new IncomingBlocks(transfer, signal);
    itself[0] = incoming;
    held.put(incoming, new Held(extent.length(), second));
    access.counters().increment(REQUESTS);
    transfer.start(access.client().connect(plan.queue().peer()));
    return incoming;
  }

  /** Whether a request is a retry of a failed one. */
  boolean isSecondAttempt(IncomingBlocks incoming) {
    return held.get(incoming).second;
  }

  /** Frees the memory that an answer does not need. */
  void trim(IncomingBlocks incoming) {
    incoming.transfer().trim();
    Held memory = held.get(incoming);
    long now = incoming.transfer().heldBytes();
    share.change(now - memory.bytes);
    memory.bytes = now;
  }

  /** Frees the memory of a request. */
  void release(IncomingBlocks incoming) {
    Held memory = held.remove(incoming);
    if (memory != null) {
      incoming.transfer().close();
      share.change(-memory.bytes);
    }
  }

  /**
   * Keeps the memory of a finished request until {@link #close()}. It no longer counts for the
   * limit.
   */
  void keep(IncomingBlocks delivered) {
    share.change(-held.remove(delivered).bytes);
    kept.add(delivered);
  }

  /** The outstanding request whose last progress is the oldest. */
  Optional<IncomingBlocks> slowest() {
    long now = System.nanoTime();
    return held.keySet().stream()
        .filter(transfer -> !transfer.transfer().isEnded())
        .max(Comparator.comparingLong(transfer -> now - transfer.transfer().lastProgress()));
  }

  /** Frees all memory. Bytes that still arrive are dropped. */
  @Override
  public void close() {
    held.keySet().forEach(transfer -> transfer.transfer().close());
    held.clear();
    kept.forEach(transfer -> transfer.transfer().close());
    kept.clear();
    share.close();
  }
}
