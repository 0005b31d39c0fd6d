package io.weft.spark.feed;

import java.util.Iterator;

/**
 * The batches of one rank in one epoch, in memory of its GPU: while one is used the next is
 * uploaded. Otherwise as {@link FeedBatches}. For the task's thread.
 */
public interface GpuFeedBatches extends Iterator<GpuFeedBatch>, AutoCloseable {
  /** Lets go of everything that no lease keeps. Can be repeated; the task's end does it, too. */
  @Override
  void close();
}
