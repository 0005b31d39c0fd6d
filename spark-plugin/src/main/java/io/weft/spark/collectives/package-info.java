/**
 * Communicators for the tasks of barrier stages: {@link
 * io.weft.spark.collectives.WeftCollectives#communicator} is what users call. The tasks of one
 * stage attempt meet through the driver plugin, which never waits for anybody: executors ask again
 * and again until all have come, one has failed, or their deadline has passed.
 *
 * <p>Everything here is thread-safe unless it says otherwise. A communicator belongs to its task
 * and is closed when the task ends, at the latest. One thread, "weft-collectives-watch", exists
 * while communicators are open and looks whether Spark has killed their tasks.
 */
package io.weft.spark.collectives;
