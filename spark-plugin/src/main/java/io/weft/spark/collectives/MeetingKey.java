package io.weft.spark.collectives;

import java.io.Serializable;

/**
 * Which tasks meet: those of one attempt at a barrier stage.
 *
 * @param stage Spark's stage id, unique within the application
 * @param attempt number of the stage attempt, from 0
 */
public record MeetingKey(int stage, int attempt) implements Serializable {
  /** Such as "barrier stage 3.1". */
  @Override
  public String toString() {
    return "barrier stage " + stage + "." + attempt;
  }
}
