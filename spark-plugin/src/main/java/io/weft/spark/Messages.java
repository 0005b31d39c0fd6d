package io.weft.spark;

import io.weft.peer.PeerAddress;
import io.weft.spark.collectives.MeetingCall;
import java.io.Serializable;

/**
 * What executors say to the driver and hear back. Records, because Java reads a record by the names
 * of its fields, so that two versions of Weft understand each other well enough to part politely.
 */
final class Messages {
  private Messages() {}

  /** A message of an executor. */
  sealed interface ToDriver extends Serializable
      permits Hello, Announce, Lookup, MemoryPressure, Report, Meet {}

  /** Asked first: may an executor of this version join? Answered by a {@link Verdict}. */
  record Hello(String executorId, String host, String version) implements ToDriver {}

  /** Asked once the exchange runs. Answered by a {@link Verdict}. */
  record Announce(PeerAddress address) implements ToDriver {}

  /** Asks where an executor is. Answered by a {@link Found}. */
  record Lookup(String executorId) implements ToDriver {}

  /** Sent when an executor's arena runs full of shuffles that perhaps nobody needs any more. */
  record MemoryPressure(String executorId) implements ToDriver {}

  /** Sent from time to time for the UI. */
  record Report(ExecutorReport report) implements ToDriver {}

  /**
   * Asked by a task of a barrier stage, again and again. Answered by a {@link
   * io.weft.spark.collectives.MeetingAnswer}.
   */
  record Meet(MeetingCall call) implements ToDriver {}

  /**
   * Whether an executor may go on.
   *
   * @param refusal why not, as a sentence; null if it may
   */
  record Verdict(String refusal) implements Serializable {
    static final Verdict WELCOME = new Verdict(null);
  }

  /**
   * The answer to a lookup.
   *
   * @param address null if the executor has not announced itself
   */
  record Found(PeerAddress address) implements Serializable {}
}
