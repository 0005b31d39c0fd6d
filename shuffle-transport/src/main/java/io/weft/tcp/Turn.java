package io.weft.tcp;

/**
 * One thing asked of a connection that many share. Answers and streams come there in the order in
 * which they were asked for, so whoever waits does not wait in vain while anything comes that was
 * asked for before; but if only what was asked for later comes, this was lost.
 *
 * <p>The order is that of the clock, and only what was asked for later by more than the patience
 * counts as later: so nothing is blamed for what happens between a look at the clock and the
 * socket, or at a peer that packs several answers at a time. Thread-safe.
 */
public final class Turn {
  private final long askedAt = System.nanoTime();
  private final long patienceNanos;
  private volatile long lastMoved;

  /**
   * Something that is asked for now.
   *
   * @param lastMoved when something came of it before, as {@link System#nanoTime()} has it
   * @param patienceNanos how long nothing may come
   */
  public Turn(long lastMoved, long patienceNanos) {
    this.lastMoved = lastMoved;
    this.patienceNanos = patienceNanos;
  }

  /** When something came that this has to wait for, or this itself. */
  public long lastMoved() {
    return lastMoved;
  }

  /** Something came that was asked for at another turn, or this one. */
  void moved(Turn other, long now) {
    if (other.askedAt - askedAt <= patienceNanos) {
      lastMoved = now;
    }
  }
}
