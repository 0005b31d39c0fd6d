package io.weft.spark.rendezvous;

import java.util.List;

/**
 * The tasks of one attempt at a barrier stage. Spark reports their failures one by one, so the key
 * names no executors.
 *
 * @param stage Spark's stage id, unique within the application
 * @param attempt number of the stage attempt, from 0
 */
public record StageAttempt(int stage, int attempt) implements RendezvousKey {
  @Override
  public List<String> executors() {
    return List.of();
  }

  /** For example "barrier stage 3.1". */
  @Override
  public String toString() {
    return "barrier stage " + stage + "." + attempt;
  }
}
