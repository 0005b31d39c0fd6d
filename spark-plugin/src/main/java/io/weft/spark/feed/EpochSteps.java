package io.weft.spark.feed;

import java.util.NoSuchElementException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
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
    void release();
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
    release();
    current = take(place);
    place++;
    return current;
  }

  private void release() {
    if (current != null) {
      current.release();
      current = null;
    }
  }

  public void close() {
    closed = true;
    release();
  }

  /**
   * Counts the holders of a batch: its epoch, until the next batch, and each lease. Thread-safe.
   */
  static final class BatchReferences {
    private final AtomicInteger holds = new AtomicInteger(1);
    private final Runnable end;

    /**
     * Starts with the epoch's hold.
     *
     * @param end runs once, when the last hold ends, on the thread that ends it
     */
    BatchReferences(Runnable end) {
      this.end = end;
    }

    /**
     * Adds a hold, which ends when the lease is closed.
     *
     * @throws IllegalStateException if the batch has ended
     */
    FeedLease retain() {
      if (holds.getAndUpdate(count -> count == 0 ? 0 : count + 1) == 0) {
        throw over();
      }
      AtomicBoolean closed = new AtomicBoolean();
      return () -> {
        if (!closed.getAndSet(true)) {
          release();
        }
      };
    }

    /**
     * Verifies that the batch is still held.
     *
     * @throws IllegalStateException if the batch has ended
     */
    void require() {
      if (isOver()) {
        throw over();
      }
    }

    boolean isOver() {
      return holds.get() == 0;
    }

    /** Ends one hold. */
    void release() {
      if (holds.getAndUpdate(count -> Math.max(0, count - 1)) == 1) {
        end.run();
      }
    }

    /** Ends all holds; called at the end of the task. */
    void releaseAll() {
      if (holds.getAndSet(0) > 0) {
        end.run();
      }
    }

    private static IllegalStateException over() {
      return new IllegalStateException(
          "the batch has ended: it is valid until the next one, retain() keeps it longer");
    }
  }
}
