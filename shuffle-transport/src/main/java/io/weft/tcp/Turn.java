package io.weft.tcp;

/**
 * Tracks the progress of one request on a shared connection. A connection answers requests in their
 * order. So a request is not lost while answers to earlier requests arrive. It is lost if only
 * answers to later requests arrive.
 *
 * <p>Requests are ordered by the clock. A request counts as later only if it was sent more than the
 * timeout later. This tolerates delays between reading the clock and writing to the socket, and a
 * peer that compresses several answers at a time. Thread-safe.
 */
public final class Turn {
  private final long askedAt = System.nanoTime();
  private final long timeoutNanos;
  private volatile long lastMoved;

  /**
   * Tracks a request that is sent now.
   *
   * @param lastMoved time of its last progress so far, by {@link System#nanoTime()}
   * @param timeoutNanos the longest time without progress
   */
  public Turn(long lastMoved, long timeoutNanos) {
    this.lastMoved = lastMoved;
    this.timeoutNanos = timeoutNanos;
  }

  /** The time of the last progress of this request or of one before it. */
  public long lastMoved() {
    return lastMoved;
  }

  /** Records progress of a request, which may be this one. */
  void moved(Turn other, long now) {
    if (other.askedAt - askedAt <= timeoutNanos) {
      lastMoved = now;
    }
  }
}
