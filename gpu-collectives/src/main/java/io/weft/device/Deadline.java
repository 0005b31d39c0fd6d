package io.weft.device;

import java.time.Duration;

/**
 * A point in time at which a wait ends. Immutable and thread-safe, except for {@link
 * #fromFirstUse}. It is based on {@link System#nanoTime}, so it is meaningless in another process.
 */
public class Deadline {
  private final long start;
  private final long nanos;

  private Deadline(long start, long nanos) {
    this.start = start;
    this.nanos = nanos;
  }

  /**
   * A deadline that starts now.
   *
   * @param length zero or more; at most about 292 years are used
   */
  public static Deadline after(Duration length) {
    if (length.isNegative()) {
      throw new IllegalArgumentException("a deadline " + length + " from now is in the past");
    }
    return afterNanos(saturatedNanos(length));
  }

  /** As {@link #after}, without creating a {@link Duration}. */
  public static Deadline afterNanos(long nanos) {
    return new Deadline(System.nanoTime(), nanos);
  }

  /**
   * A deadline that started at a given time.
   *
   * @param startNanos a past value of {@link System#nanoTime}
   */
  public static Deadline since(long startNanos, long nanos) {
    return new Deadline(startNanos, nanos);
  }

  /**
   * A deadline that starts when it is first asked for a time, so that work which does not wait
   * reads no clock. For one thread.
   */
  public static Deadline fromFirstUse(long nanos) {
    return new LateDeadline(nanos);
  }

  private static final class LateDeadline extends Deadline {
    private Deadline started;

    private LateDeadline(long nanos) {
      super(0, nanos);
    }

    private Deadline started() {
      if (started == null) {
        started = afterNanos(length().toNanos());
      }
      return started;
    }

    @Override
    public long elapsedNanos() {
      return started().elapsedNanos();
    }

    @Override
    public Deadline earlierBy(long earlierNanos) {
      return started().earlierBy(earlierNanos);
    }
  }

  private static long saturatedNanos(Duration length) {
    return length.toSeconds() >= Long.MAX_VALUE / 1_000_000_000L
        ? Long.MAX_VALUE
        : length.toNanos();
  }

  /** Nanoseconds left, never below zero. */
  public long remainingNanos() {
    return Math.max(0, nanos - elapsedNanos());
  }

  public boolean expired() {
    return elapsedNanos() >= nanos;
  }

  /** Nanoseconds since this deadline was set. */
  public long elapsedNanos() {
    return System.nanoTime() - start;
  }

  /** The time from start to expiry. */
  public Duration length() {
    return Duration.ofNanos(nanos);
  }

  /** A deadline with the same start that expires earlier by the given time, at the earliest now. */
  public Deadline earlierBy(long earlierNanos) {
    return new Deadline(start, Math.max(0, nanos - earlierNanos));
  }

  @Override
  public String toString() {
    return describe(nanos);
  }

  /** Formats nanoseconds for a message, such as 30 s or 250 ms. */
  public static String describe(long nanos) {
    if (nanos >= 1_000_000_000L) {
      double seconds = nanos / 1e9;
      return seconds == Math.rint(seconds)
          ? (long) seconds + " s"
          : String.format("%.1f s", seconds);
    }
    return nanos >= 1_000_000L ? nanos / 1_000_000L + " ms" : nanos / 1_000L + " us";
  }
}
