package io.weft.training;

/**
 * How far a training has come.
 *
 * @param epoch that runs, from 0
 * @param step batches of it that are done, from 0
 */
public record CheckpointPosition(long epoch, long step) implements Comparable<CheckpointPosition> {
  /** Before the first batch. */
  public static final CheckpointPosition START = new CheckpointPosition(0, 0);

  /**
   * Checks the numbers.
   *
   * @throws IllegalArgumentException if one is negative
   */
  public CheckpointPosition {
    if (epoch < 0 || step < 0) {
      throw new IllegalArgumentException("no position: epoch " + epoch + ", step " + step);
    }
  }

  @Override
  public int compareTo(CheckpointPosition other) {
    return epoch != other.epoch ? Long.compare(epoch, other.epoch) : Long.compare(step, other.step);
  }
}
