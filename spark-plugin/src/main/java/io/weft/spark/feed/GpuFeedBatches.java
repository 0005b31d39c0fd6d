package io.weft.spark.feed;

import java.util.Iterator;

/**
 * The batches of one rank in one epoch, in memory of its GPU. The next batch is uploaded while one
 * is in use. Otherwise like {@link FeedBatches}. For the task's thread.
 */
public interface GpuFeedBatches extends Iterator<GpuFeedBatch>, AutoCloseable {
  /** Releases all batches that no lease keeps. Idempotent; also called when the task ends. */
  @Override
  void close();
}
