package io.weft.transfer;

import java.util.concurrent.TimeUnit;

/**
 * A request that a peer was too busy for.
 *
 * @param refused holds its place in the queue and no memory any more
 * @param second whether it repeats another one
 * @param refusedAt when, as {@link System#nanoTime()} has it
 * @param delayNanos how long after that it is to be sent again
 */
record Postponed(IncomingBlocks refused, boolean second, long refusedAt, long delayNanos) {
  static Postponed now(IncomingBlocks refused, boolean second) {
    long delay = TimeUnit.MILLISECONDS.toNanos(refused.transfer().retryAfterMillis());
    return new Postponed(refused, second, System.nanoTime(), delay);
  }

  /** Nanoseconds until it is to be sent; 0 or less: now. */
  long left(long now) {
    return refusedAt + delayNanos - now;
  }
}
