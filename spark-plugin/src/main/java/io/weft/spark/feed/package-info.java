/**
 * Feeds exchange a data set evenly (or by key) onto the ranks of a training job. The ranks read
 * batches of exactly the requested number of rows in the memory where the exchange put them. Users
 * call {@link io.weft.spark.feed.WeftFeed} on the driver; their function gets a {@link
 * io.weft.spark.feed.FeedTask} on an executor. {@link io.weft.spark.feed.WeftTensors} declares
 * tensor columns.
 *
 * <p>A task's feed and its batches are for the task's thread; leases may be closed on any thread.
 * Batches own no memory. The feed keeps the exchange's memory until the next batch, a lease until
 * it is closed, and neither beyond the end of the task.
 */
package io.weft.spark.feed;
