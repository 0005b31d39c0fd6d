package io.weft.collectives;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Options that every implementation of a communicator has. Only the timeout must be the same on all
 * ranks.
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

  /**
   * Names of ranks in failures, in addition to their numbers, such as a task, an executor and a
   * host. Implementations are thread-safe.
   */
  @FunctionalInterface
  public interface RankNames {
    /** No names, only numbers. */
    RankNames NONE = rank -> "";

    /** The name of a rank, such as "task 7 on executor 2 at host-a"; empty for none. */
    String of(int rank);

    /** Returns the failure with the names of the ranks at fault appended to its message, once. */
    default CollectiveException explain(CollectiveException cause) {
      List<String> added = new ArrayList<>();
      for (int rank : cause.ranks()) {
        String name = of(rank);
        if (!name.isEmpty() && !String.valueOf(cause.getMessage()).contains(name)) {
          added.add("rank " + rank + " is " + name);
        }
      }
      if (added.isEmpty()) {
        return cause;
      }
      CollectiveException explained =
          new CollectiveException(
              cause.kind(),
              cause.ranks(),
              cause.getMessage() + " (" + String.join(", ", added) + ")",
              cause.getCause());
      explained.setStackTrace(cause.getStackTrace());
      return explained;
    }
  }

  /**
   * The head of every log line of a communicator or a lane.
   *
   * @param executor id of the executor, or empty outside of one
   * @param device the device of the data, such as host or cuda:0; empty when it is obvious
   * @param stage stage id, or -1
   * @param attempt stage attempt, or -1
   */
  public record LogPrefix(String executor, String device, int stage, int attempt) {
    /** Only the rank. */
    public static final LogPrefix NONE = new LogPrefix("", "", -1, -1);

    /** The prefix of a rank, such as "[executor 2 cuda:0 stage 3.1 rank 1/4 of 5f3a9c01] ". */
    public String of(int rank, int nranks, UniqueId id) {
      return bracketed(fields() + "rank " + rank + "/" + nranks + " of " + id);
    }

    /**
     * The prefix of a lane, such as "[executor 2 cuda:0 stage 3.1] "; empty when all parts are
     * empty.
     */
    public String ofLane() {
      return fields().isEmpty() ? "" : bracketed(fields().strip());
    }

    private static String bracketed(String text) {
      return "[" + text + "] ";
    }

    private String fields() {
      StringBuilder text = new StringBuilder();
      if (!executor.isEmpty()) {
        text.append("executor ").append(executor).append(' ');
      }
      if (!device.isEmpty()) {
        text.append(device).append(' ');
      }
      if (stage >= 0) {
        text.append("stage ").append(stage);
        if (attempt >= 0) {
          text.append('.').append(attempt);
        }
        text.append(' ');
      }
      return text.toString();
    }
  }
}
