/**
 * The executor side of the plugin, the messages between driver and executors, and the metrics.
 * {@link io.weft.spark.runtime.WeftExecutorPlugin} opens the exchange of its JVM before the first
 * task and closes it after the last. Tasks get the exchange from {@link
 * io.weft.spark.runtime.WeftExecutor}. {@link io.weft.spark.runtime.Messages} has all messages.
 *
 * <p>Messages are sent as bytes, because Spark's message threads do not see the classes of the
 * application's jars. Spark starts and stops the plugin on one thread; tasks call it on theirs.
 */
package io.weft.spark.runtime;
