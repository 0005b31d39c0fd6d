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
 * The transfers of one reader whose memory is held, and how much more may be asked for. Owns their
 * memory. For the reader's thread.
 */
final class TransferWindow implements AutoCloseable {
  private final RemoteAccess access;
  private final boolean retained;
  private final Consumer<IncomingBlocks> events;
  private final Map<IncomingBlocks, Held> held = new HashMap<>();
  private final List<IncomingBlocks> kept = new ArrayList<>();
  private final ReceiveShare share;

  /** What became of a request. */
  enum Sent {
    YES,
    /** The reader has as much under way as it may, or as there is memory for. */
    NO_ROOM,
    /** The peer has; another one may be asked. */
    NO_ROOM_FOR_PEER
  }

  /** The memory of a transfer and whether it repeats another one. */
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
   * @param retained whether the memory is kept to the end
   * @param events told, on any thread, of a transfer that has news
   */
  TransferWindow(RemoteAccess access, boolean retained, Consumer<IncomingBlocks> events) {
    this.access = access;
    this.retained = retained;
    this.events = events;
    this.share = new ReceiveShare(access.budget(), access.counters());
  }

  /**
   * Sends a peer's next request, unless it has to wait until memory was given back.
   *
   * @throws UncheckedIOException if there is no memory for it although nothing is under way
   */
  Sent send(PeerQueue queue) {
    TransferPlan plan = queue.plan(access.limits().requestBytes());
    boolean waitable = isAnythingUnderWay();
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

  /** A request larger than the limit goes out once nothing of the peer is under way. */
  private boolean isPeerFull(PeerQueue queue, long room) {
    long bytes = room;
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
   * Memory for a request, and its place among those of the executor's readers. Null if there will
   * be both when something under way was used up.
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
      // Not the peer's fault: what it wrote is good and must not be computed again.
      throw new UncheckedIOException(
          "no memory to receive blocks of " + plan.queue().peer() + " into: " + e.getMessage(), e);
    }
  }

  private boolean isAnythingUnderWay() {
    return held.keySet().stream().anyMatch(transfer -> !transfer.isDelivered());
  }

  /**
   * Sends the rest of a failed transfer's request again.
   *
   * @throws UncheckedIOException as {@link #send} does
   */
  IncomingBlocks sendAgain(IncomingBlocks failed) {
    BlockTransfer transfer = failed.transfer();
    TransferPlan rest = transfer.plan().rest(transfer.answer(), transfer.arrivedChunks());
    return start(rest, reserve(rest, false), true, transfer.lastProgress());
  }

  /**
   * Asks again what a peer was too busy for; null if there is no memory for it now.
   *
   * @param needed whether nothing is used up before this has come
   * @throws UncheckedIOException as {@link #send} does
   */
  IncomingBlocks resume(Postponed postponed, boolean needed) {
    BlockTransfer busy = postponed.refused().transfer();
    Extent extent = reserve(busy.plan(), !needed && isAnythingUnderWay());
    return extent == null
        ? null
        : start(busy.plan(), extent, postponed.second(), busy.lastProgress());
  }

  private IncomingBlocks start(TransferPlan plan, Extent extent, boolean second, long since) {
    Signal signal = new Signal();
    // Filled in before the transfer starts, so before anything can signal.
    IncomingBlocks[] itself = new IncomingBlocks[1];
    Consumer<BlockTransfer> news =
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
            news,
            since,
            access.limits().timeout());
    IncomingBlocks incoming = new IncomingBlocks(transfer, signal);
    itself[0] = incoming;
    held.put(incoming, new Held(extent.length(), second));
    access.counters().increment(REQUESTS);
    transfer.start(access.client().connect(plan.queue().peer()));
    return incoming;
  }

  /** Whether a transfer repeats one that had failed. */
  boolean isSecondAttempt(IncomingBlocks incoming) {
    return held.get(incoming).second;
  }

  /** Gives back the memory that an answer turned out not to need. */
  void trim(IncomingBlocks incoming) {
    incoming.transfer().trim();
    Held memory = held.get(incoming);
    long now = incoming.transfer().heldBytes();
    share.change(now - memory.bytes);
    memory.bytes = now;
  }

  /** Gives the memory of a transfer back. */
  void release(IncomingBlocks incoming) {
    Held memory = held.remove(incoming);
    if (memory != null) {
      incoming.transfer().close();
      share.change(-memory.bytes);
    }
  }

  /** A transfer is over, and its memory stays until the end without counting any more. */
  void keep(IncomingBlocks delivered) {
    share.change(-held.remove(delivered).bytes);
    kept.add(delivered);
  }

  /** The transfer under way that made progress the longest time ago. */
  Optional<IncomingBlocks> slowest() {
    long now = System.nanoTime();
    return held.keySet().stream()
        .filter(transfer -> !transfer.transfer().isEnded())
        .max(Comparator.comparingLong(transfer -> now - transfer.transfer().lastProgress()));
  }

  /** Gives all memory back; what still arrives is dropped. */
  @Override
  public void close() {
    held.keySet().forEach(transfer -> transfer.transfer().close());
    held.clear();
    kept.forEach(transfer -> transfer.transfer().close());
    kept.clear();
    share.close();
  }
}
