package io.weft.collectives;

import java.time.Duration;

/**
 * Options that every implementation of a communicator has. Only the timeout has to be the same on
 * all ranks.
 *
 * @param timeout how long one operation, or the creation, may take; at least 10 ms
 * @param prefix the head of log lines; may differ between ranks
 * @param names the names of ranks in failures; may differ between ranks
 */
public record CommunicatorOptions(Duration timeout, LogPrefix prefix, RankNames names) {
  /** A timeout of two minutes, no log prefix, no names. */
  public static final CommunicatorOptions DEFAULT =
      new CommunicatorOptions(Duration.ofMinutes(2), LogPrefix.NONE, RankNames.NONE);

  public CommunicatorOptions {
    if (timeout.compareTo(Duration.ofMillis(10)) < 0) {
      throw new IllegalArgumentException(
          "a timeout of " + timeout + " is shorter than any operation; give at least 10 ms");
    }
  }

  public CommunicatorOptions withTimeout(Duration other) {
    return new CommunicatorOptions(other, prefix, names);
  }

  public CommunicatorOptions withPrefix(LogPrefix other) {
    return new CommunicatorOptions(timeout, other, names);
  }

  public CommunicatorOptions withNames(RankNames other) {
    return new CommunicatorOptions(timeout, prefix, other);
  }
}
