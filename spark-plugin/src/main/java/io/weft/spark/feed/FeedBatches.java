package io.weft.spark.feed;

import java.util.Iterator;

/**
 * The batches of one rank in one epoch: exactly {@link FeedTask#steps()}. A batch is valid until
 * the next call of {@link #next()} or {@link #close()}, unless a lease keeps it. For the task's
 * thread.
 */
public interface FeedBatches extends Iterator<FeedBatch>, AutoCloseable {
  /** Releases all batches that no lease keeps. Idempotent; also called when the task ends. */
  @Override
  void close();
}
