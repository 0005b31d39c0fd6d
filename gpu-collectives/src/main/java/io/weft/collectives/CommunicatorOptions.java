package io.weft.collectives;

import java.time.Duration;

/**
 * What every implementation of a communicator wants to know. The same on all ranks.
 *
 * @param timeout how long one operation, or the creation, may take; from 10 ms up
 * @param prefix who speaks in the logs; may differ between ranks
 * @param names what ranks are called in failures; may differ between ranks
 */
public record CommunicatorOptions(Duration timeout, LogPrefix prefix, RankNames names) {
  /** Two minutes, no prefix, no names. */
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
