/**
 * The executor's side of the plugin: it owns the one {@code ExecutorExchange} of its JVM, opens it
 * before the first task, reports to the driver from time to time, and closes it after the last.
 *
 * <p>Spark starts and stops it on one thread; tasks ask for the exchange on theirs.
 */
package io.weft.spark.executor;
