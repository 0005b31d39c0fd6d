package io.weft.spark.feed;

/**
 * Keeps a batch readable beyond the next one, but no longer than the task. Can be closed on any
 * thread, and repeatedly.
 */
public interface FeedLease extends AutoCloseable {
  @Override
  void close();
}
