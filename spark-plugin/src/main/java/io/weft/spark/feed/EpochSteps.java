package io.weft.spark.feed;

import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;

/**
 * The steps of one epoch: a batch at a time, of which the epoch lets go when the next one begins.
 * For its task's thread.
 *
 * @param <B> the batches
 */
abstract class EpochSteps<B extends EpochSteps.Held> {
  private final TaskContext context;
  private B current;
  private int place;
  private boolean closed;

  /** A batch that the epoch holds. */
  interface Held {
    /** The epoch needs it no more. */
    void letGo();
  }

  EpochSteps(TaskContext context) {
    this.context = context;
  }

  /** Whether the epoch has another batch. */
  abstract boolean hasMore();

  /**
   * The next batch.
   *
   * @param step its place in the epoch, from 0
   */
  abstract B take(int step);

  public final boolean hasNext() {
    return !closed && hasMore();
  }

  public final B next() {
    if (!hasNext()) {
      throw new NoSuchElementException(
          closed ? "these batches were closed" : "the epoch has no more than its steps");
    }
    context.killTaskIfInterrupted();
    letGo();
    current = take(place);
    place++;
    return current;
  }

  private void letGo() {
    if (current != null) {
      current.letGo();
      current = null;
    }
  }

  public void close() {
    closed = true;
    letGo();
  }
}
