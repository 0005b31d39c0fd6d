package io.weft.transfer;

import java.util.concurrent.TimeUnit;

/**
 * A request that a busy peer refused.
 *
 * @param refused keeps its place in the queue, but no memory
 * @param second whether it is a retry
 * @param refusedAt time of the refusal, by {@link System#nanoTime()}
 * @param delayNanos delay before it is sent again
 */
record Postponed(IncomingBlocks refused, boolean second, long refusedAt, long delayNanos) {
  static Postponed now(IncomingBlocks refused, boolean second) {
    long delay = TimeUnit.MILLISECONDS.toNanos(refused.transfer().retryAfterMillis());
    return new Postponed(refused, second, System.nanoTime(), delay);
  }

  /** The nanoseconds until it is due; 0 or less if it is due now. */
  long left(long now) {
    return refusedAt + delayNanos - now;
  }
}
