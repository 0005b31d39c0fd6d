package io.weft.spark.rendezvous;

import java.io.Serializable;
import java.util.List;

/**
 * The two ends of a clique, by rank.
 *
 * @param ends exactly two
 */
public record CliquePair(List<End> ends) implements RendezvousKey {
  /**
   * One end of a clique, as the driver knows it.
   *
   * @param executorId Spark's executor id
   * @param incarnation of the executor
   * @param device for messages, for example "host"
   */
  public record End(String executorId, String incarnation, String device) implements Serializable {
    /** For example "executor 2/host". */
    @Override
    public String toString() {
      return "executor " + executorId + "/" + device;
    }
  }

  public CliquePair {
    ends = List.copyOf(ends);
    if (ends.size() != 2) {
      throw new IllegalArgumentException("a clique of transfers has 2 ends, not " + ends);
    }
  }

  @Override
  public List<String> executors() {
    return List.of(ends.get(0).executorId(), ends.get(1).executorId());
  }
}
