package io.weft.collectives;

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
   * The prefix of a lane, such as "[executor 2 cuda:0 stage 3.1] "; empty when all parts are empty.
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
