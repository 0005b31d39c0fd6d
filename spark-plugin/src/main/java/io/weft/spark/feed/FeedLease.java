package io.weft.spark.feed;

/**
 * Keeps a batch readable, beyond the next one and at most until the task ends. Can be closed on any
 * thread, once or more.
 */
public interface FeedLease extends AutoCloseable {
  @Override
  void close();
}
