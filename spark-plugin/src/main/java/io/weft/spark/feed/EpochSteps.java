package io.weft.spark.feed;

import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;

/**
 * The steps of one epoch, one batch each. The epoch releases a batch when the next one begins. For
 * its task's thread.
 *
 * @param <B> type of the batches
 */
abstract class EpochSteps<B extends EpochSteps.Held> {
  private final TaskContext context;
  private B current;
  private int place;
  private boolean closed;

  /** A batch that the epoch holds. */
  interface Held {
    /** Ends the epoch's hold. */
    void letGo();
  }

  EpochSteps(TaskContext context) {
    this.context = context;
  }

  /** Returns whether the epoch has another batch. */
  abstract boolean hasMore();

  /**
   * Returns the next batch.
   *
   * @param step its index in the epoch, from 0
   */
  abstract B take(int step);

  public final boolean hasNext() {
    return !closed && hasMore();
  }

  public final B next() {
    if (!hasNext()) {
      throw new NoSuchElementException(
          closed ? "these batches were closed" : "the epoch has no further step");
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
