package io.weft.spark.transfers;

import java.io.Serializable;

/**
 * A member of a clique as the driver knows it.
 *
 * @param executorId Spark's
 * @param incarnation of the executor
 * @param device in words
 */
public record CliqueEnd(String executorId, String incarnation, String device)
    implements Serializable {
  /** Such as "executor 2/host". */
  @Override
  public String toString() {
    return "executor " + executorId + "/" + device;
  }
}
