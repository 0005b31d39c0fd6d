package io.weft.transfers;

import io.weft.collectives.TypedBuffer;
import io.weft.collectives.clique.CliqueKey;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.transfers.Manifest.ManifestEntry;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/**
 * One end of one transfer: its clique, buffer, peer and event. The event is pending until the
 * source is recorded; then the transfer has its place on the clique's lane. The event always ends.
 *
 * <p>The buffer is in use until the lane no longer touches it; this may be after the event has
 * failed. Thread-safe.
 */
final class PreparedTransfer implements AutoCloseable {
  /** The progress of a transfer, for messages. */
  enum Stage {
    /** Created, but not queued. */
    PREPARED("was not launched"),
    /** Queued in its clique. */
    QUEUED("had not been offered to the peer"),
    /** Offered to the peer, which has not offered its end. */
    OFFERED("was not offered by the peer"),
    /** Offered by both ends; the payload moves. */
    MOVING("was being moved"),
    ENDED("had ended");

    private final String text;

    Stage(String text) {
      this.text = text;
    }
  }

  private final CliqueKey clique;
  private final TransferEndpoints ends;
  private final long key;
  private final TransferAttempt attempt;
  private final TypedBuffer buffer;
  private final TransferEncoding coding;
  private final Event definition;
  private final HostEvent event;
  private final HostEvent usage;
  private volatile Stage stage = Stage.PREPARED;
  private volatile boolean withdrawn;

  /** Ends when only the lane uses the memory. */
  private volatile CompletableFuture<?> others = CompletableFuture.completedFuture(null);

  /**
   * Prepares a transfer and marks the buffer as used.
   *
   * @param attempt of the work that starts the transfer
   * @param coding the form of the elements; its memory is freed with the last use of the buffer
   * @param definition the work that makes the buffer ready to be read or written
   */
  PreparedTransfer(
      CliqueKey clique,
      TransferEndpoints ends,
      long key,
      TransferAttempt attempt,
      TypedBuffer buffer,
      TransferEncoding coding,
      Event definition) {
    this.clique = clique;
    this.ends = ends;
    this.key = key;
    this.attempt = attempt;
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

  /** The form in which the elements travel. */
  TransferEncoding coding() {
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

  /** The progress of the transfer. The event always ends. */
  public Event event() {
    return event;
  }

  Event definition() {
    return definition;
  }

  /** The manifest entry for the peer. */
  ManifestEntry entry() {
    // Read first: a failure after this point goes into the verdict.
    boolean behind = isBehindDevice();
    // The event learns of the source's failure a little later than the source reports it.
    String failure = failureText();
    // A failed transfer moves nothing, whether its source succeeds or not.
    boolean recorded = behind && failure.isEmpty();
    return new ManifestEntry(
        ManifestEntry.Kind.of(sends(), recorded),
        key,
        buffer.type(),
        buffer.count(),
        coding.kind(),
        failure,
        attempt);
  }

  /**
   * Whether this end was withdrawn, or was cancelled after its offer. Else a failed transfer is one
   * whose source has failed, or that was cancelled before its offer.
   */
  boolean isGivenUp() {
    boolean cancelled = isShared() && definition.failure().isEmpty();
    return hasFailed() && (withdrawn || cancelled);
  }

  /** Why it has failed; empty while it has not. */
  String failureText() {
    return event.failure().or(definition::failure).map(PreparedTransfer::text).orElse("");
  }

  /** The text of a failure. Never empty, because an empty text means success. */
  static String text(Throwable failure) {
    String message = failure.getMessage();
    return message == null || message.isEmpty() ? failure.toString() : message;
  }

  /** Marks it as queued, also if it was closed before: then the peer gets the failure. */
  synchronized void queue() {
    stage = Stage.QUEUED;
  }

  void setStage(Stage next) {
    stage = next;
  }

  /** Records the event: the transfer has its place on the lane, and others may follow it. */
  void record() {
    event.record();
  }

  /** Whether it can be offered: its source has ended, or the transfer has failed. */
  boolean isReady() {
    return hasEnded(definition) || hasEnded(event);
  }

  /** Whether a wire that follows devices can take it before its source has ended. */
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

  /** Keeps the memory until a use has completed or failed, also beyond the transfer's end. */
  void keepUntil(CompletableFuture<?> use) {
    others = use;
  }

  private void endUse() {
    var unused = others.whenComplete((result, failure) -> usage.complete());
  }

  /** Completes the transfer: the payload has arrived. */
  void complete() {
    stage = Stage.ENDED;
    endUse();
    event.complete();
  }

  /** Fails the event unless it has ended; the lane may still use the buffer. */
  void fail(Throwable cause) {
    event.fail(cause);
  }

  /** As {@link #fail}, by the lane, which does not touch the buffer afterwards. */
  void end(Throwable cause) {
    stage = Stage.ENDED;
    endUse();
    event.fail(cause);
  }

  /** As {@link #fail}, with the names of both ends before a cause that names only ranks. */
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
   * The timeout failure; empty if the transfer has ended.
   *
   * @param deadline the time that the transfer had
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

  /** Whether the peer knows the transfer, so that it cannot end at this end alone. */
  boolean isShared() {
    return stage == Stage.OFFERED || stage == Stage.MOVING;
  }

  /**
   * Cancels the transfer: its event fails unless it has ended. The peer gets the failure in the
   * next round after the launch. If both ends have matched it, it runs to its end.
   */
  @Override
  public void close() {
    // Before the check of the owner: a thread that queues it afterwards offers the failure.
    event.close();
    endUseIfPrepared();
  }

  /**
   * Withdraws the transfer, as {@link #close}. Of an attempt, the peer's end waits for the next
   * transfer.
   */
  void withdraw(String reason) {
    withdrawn = true;
    event.fail(new TransferException(event.what() + " was withdrawn: " + reason));
    endUseIfPrepared();
  }

  private void endUseIfPrepared() {
    boolean mine;
    synchronized (this) {
      mine = stage == Stage.PREPARED;
      if (mine) {
        // Otherwise the stage belongs to the lane, which may change it at any time.
        stage = Stage.ENDED;
      }
    }
    if (mine) {
      usage.complete();
    }
  }

  @Override
  public String toString() {
    return event.toString();
  }

  /**
   * The two devices of a transfer, seen from one of them.
   *
   * @param local the device at this end
   * @param peer the device at the other end
   * @param sends whether data goes from local to peer
   */
  record TransferEndpoints(DeviceId local, DeviceId peer, boolean sends) {
    /** For example "from executor 1/device 0 to executor 2/device 0". */
    String text() {
      return sends ? "from " + local + " to " + peer : "from " + peer + " to " + local;
    }
  }
}
