package io.weft.collectives;

/**
 * Who speaks, at the head of every log line of a communicator or a lane.
 *
 * @param executor id of the executor, or empty outside of one
 * @param device the device whose data it is, such as host or cuda:0; empty when that is plain
 * @param stage stage id, or -1
 * @param attempt stage attempt, or -1
 */
public record LogPrefix(String executor, String device, int stage, int attempt) {
  /** Nothing to say but the rank. */
  public static final LogPrefix NONE = new LogPrefix("", "", -1, -1);

  /** Such as "[executor 2 cuda:0 stage 3.1 rank 1/4 of 5f3a9c01] ". */
  public String of(int rank, int nranks, UniqueId id) {
    return bracketed(who() + "rank " + rank + "/" + nranks + " of " + id);
  }

  /** For the lanes of this speaker: such as "[executor 2 cuda:0 stage 3.1] "; empty of nobody. */
  public String ofLane() {
    return who().isEmpty() ? "" : bracketed(who().strip());
  }

  private static String bracketed(String text) {
    return "[" + text + "] ";
  }

  private String who() {
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
