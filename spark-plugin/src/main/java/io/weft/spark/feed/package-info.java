/**
 * Feeds: a data set, exchanged evenly (or by key) onto the ranks of a training job, as batches of
 * exactly the asked number of rows that are read where the exchange put them. {@link
 * io.weft.spark.feed.WeftFeed} is what users call, on the driver; {@link
 * io.weft.spark.feed.FeedTask} is what their function gets on an executor.
 *
 * <p>A task's feed and its batches are for the task's thread; leases may be closed on any thread.
 * Batches own nothing: the exchange's memory is kept by the feed until the next batch, by a lease
 * until it is closed, and by nobody after the task has ended.
 */
package io.weft.spark.feed;
