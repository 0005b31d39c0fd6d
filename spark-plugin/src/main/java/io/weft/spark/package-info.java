/**
 * The plugin: what {@code spark.plugins=io.weft.spark.WeftPlugin} starts on the driver and on every
 * executor, and what the two say to each other.
 *
 * <p>The driver side decides at start whether Weft serves the application, tells executors so,
 * keeps the directory of peers and answers their questions on Spark's message threads without ever
 * blocking one. The executor side owns the one {@code ExecutorExchange} of its JVM: it opens it
 * before the first task and closes it after the last.
 */
package io.weft.spark;
