package io.weft.training;

/**
 * The progress of a training.
 *
 * @param epoch the current epoch, from 0
 * @param step the number of its finished batches, from 0
 */
public record CheckpointPosition(long epoch, long step) implements Comparable<CheckpointPosition> {
  /** The position before the first batch. */
  public static final CheckpointPosition START = new CheckpointPosition(0, 0);

  /**
   * Checks the numbers.
   *
   * @throws IllegalArgumentException if one is negative
   */
  public CheckpointPosition {
    if (epoch < 0 || step < 0) {
      throw new IllegalArgumentException("not a position: epoch " + epoch + ", step " + step);
    }
  }

  @Override
  public int compareTo(CheckpointPosition other) {
    return epoch != other.epoch ? Long.compare(epoch, other.epoch) : Long.compare(step, other.step);
  }
}
