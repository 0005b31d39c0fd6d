package io.weft.crosshost;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.clique.CliqueKey;
import io.weft.crosshost.wire.ManifestEntry;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/**
 * One end of one transfer: which clique, which buffer, which peer, and the event that says how far
 * it is. The event is pending until the transfer has its place on the clique's lane, which it gets
 * once its source is recorded; it always ends.
 *
 * <p>The buffer is in use until the lane no longer touches it, which may be after the event has
 * failed. Thread-safe.
 */
public final class PreparedTransfer implements AutoCloseable {
  /** How far it is. */
  enum Stage {
    /** Nobody but its maker knows of it. */
    PREPARED("was not launched"),
    /** It waits in its clique. */
    QUEUED("had not been offered to the peer"),
    /** The peer was told, but has not offered the other end. */
    OFFERED("was not offered by the peer"),
    /** Both ends agree and the payload moves. */
    MOVING("was being moved"),
    ENDED("had ended");

    private final String text;

    Stage(String text) {
      this.text = text;
    }
  }

  private final CliqueKey clique;
  private final TransferEnds ends;
  private final long key;
  private final TypedBuffer buffer;
  private final Coding coding;
  private final Event definition;
  private final HostEvent event;
  private final HostEvent usage;
  private volatile Stage stage = Stage.PREPARED;

  /** Ends when nobody but the lane uses the memory. */
  private volatile CompletableFuture<?> others = CompletableFuture.completedFuture(null);

  /**
   * Prepares a transfer; from now on the buffer is in use.
   *
   * @param coding how the elements travel; its memory goes back with the last use of the buffer
   * @param definition the work that makes the buffer ready to be read or written
   */
  PreparedTransfer(
      CliqueKey clique,
      TransferEnds ends,
      long key,
      TypedBuffer buffer,
      Coding coding,
      Event definition) {
    this.clique = clique;
    this.ends = ends;
    this.key = key;
    this.buffer = buffer;
    this.coding = coding;
    this.definition = definition;
    this.event = new HostEvent(what());
    this.usage = new HostEvent("the use of " + buffer);
    buffer.owner().usedUntil(usage);
    coding.usedUntil(usage);
  }

  private String what() {
    return "%s of %d %s with key %d %s"
        .formatted(
            ends.sends() ? "send" : "receive", buffer.count(), buffer.type(), key, ends.text());
  }

  public CliqueKey clique() {
    return clique;
  }

  public long key() {
    return key;
  }

  public TypedBuffer buffer() {
    return buffer;
  }

  /** How the elements travel. */
  Coding coding() {
    return coding;
  }

  /** Whether this end sends; else it receives. */
  public boolean sends() {
    return ends.sends();
  }

  /** The device at this end. */
  public DeviceId local() {
    return ends.local();
  }

  /** The device at the other end. */
  public DeviceId peer() {
    return ends.peer();
  }

  /** How far it is; ends always. */
  public Event event() {
    return event;
  }

  Event definition() {
    return definition;
  }

  /** What the peer is told of it. */
  ManifestEntry entry() {
    // First: what fails from now on is told afterwards.
    boolean behind = isBehindDevice();
    // The event hears of its source's failure a little later than the source says so.
    String failure = event.failure().or(definition::failure).map(PreparedTransfer::text).orElse("");
    // What has failed itself moves nothing, whatever its source does.
    boolean recorded = behind && failure.isEmpty();
    return new ManifestEntry(
        sends(), key, buffer.type(), buffer.count(), coding.kind(), failure, recorded);
  }

  /** What is said of a failure; never empty, which would say that there was none. */
  static String text(Throwable failure) {
    String message = failure.getMessage();
    return message == null || message.isEmpty() ? failure.toString() : message;
  }

  /** Takes its place in the clique; also one that was closed before, for the peer to be told. */
  synchronized void queue() {
    stage = Stage.QUEUED;
  }

  void advance(Stage next) {
    stage = next;
  }

  /** It has its place on the lane, and others may enqueue behind it. */
  void record() {
    event.record();
  }

  /** Whether the peer can be told: its source has ended, or it has failed itself. */
  boolean isReady() {
    return hasEnded(definition) || hasEnded(event);
  }

  /** Whether a wire that follows devices can have it before its source has ended. */
  boolean isBehindDevice() {
    return definition.isOnDevice()
        && coding.isPlain()
        && definition.state() == Event.State.RECORDED;
  }

  private static boolean hasEnded(Event event) {
    Event.State state = event.state();
    return state == Event.State.COMPLETE || state == Event.State.FAILED;
  }

  boolean hasFailed() {
    return event.state() == Event.State.FAILED;
  }

  /** Keeps the memory, also beyond the transfer's end, until this has ended in whatever way. */
  void keepUntil(CompletableFuture<?> use) {
    others = use;
  }

  private void endUse() {
    var unused = others.whenComplete((result, failure) -> usage.complete());
  }

  /** The payload is where it belongs. */
  void complete() {
    stage = Stage.ENDED;
    endUse();
    event.complete();
  }

  /** Fails the event unless it has ended; the lane may still use the buffer. */
  void fail(Throwable cause) {
    event.fail(cause);
  }

  /** As {@link #fail}, by the lane, which will not touch the buffer any more. */
  void end(Throwable cause) {
    stage = Stage.ENDED;
    endUse();
    event.fail(cause);
  }

  /** As {@link #fail} with the names of both ends in front of a cause that knows only ranks. */
  void failBecause(Throwable cause) {
    fail(explained(cause));
  }

  /** As {@link #end}, explained in the same way. */
  void endBecause(Throwable cause) {
    end(explained(cause));
  }

  private TransferException explained(Throwable cause) {
    return new TransferException(event.what() + " failed: " + text(cause), cause);
  }

  /**
   * What to fail with because it has taken too long; empty if it ended in time.
   *
   * @param deadline it had so long
   */
  Optional<TransferException> expiry(Duration deadline) {
    if (hasEnded(event)) {
      return Optional.empty();
    }
    Stage now = stage;
    String source =
        !hasEnded(definition)
            ? "; its source (" + definition.what() + ") was still " + definition.state()
            : "";
    return Optional.of(
        new TransferException(
            "%s did not end within %s: it %s%s"
                .formatted(event.what(), Deadline.describe(deadline.toNanos()), now.text, source)));
  }

  /** Whether the peer knows of it, so that it cannot end at this end alone. */
  boolean isShared() {
    return stage == Stage.OFFERED || stage == Stage.MOVING;
  }

  /**
   * Drops the transfer: its event fails unless it has ended. The peer is told once the transfer's
   * batch has left.
   */
  @Override
  public void close() {
    // Before it is known whose it is: whoever queues it from now on tells the peer of the failure.
    event.close();
    boolean mine;
    synchronized (this) {
      mine = stage == Stage.PREPARED;
      stage = mine ? Stage.ENDED : stage;
    }
    if (mine) {
      usage.complete();
    }
  }

  @Override
  public String toString() {
    return event.toString();
  }
}
