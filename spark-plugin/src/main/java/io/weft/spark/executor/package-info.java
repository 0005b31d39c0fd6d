/**
 * The executor side of the plugin. It owns the {@code ExecutorExchange} of its JVM: it opens it
 * before the first task, reports to the driver periodically, and closes it after the last task.
 *
 * <p>Spark starts and stops it on one thread. Tasks get the exchange on their own threads.
 */
package io.weft.spark.executor;
