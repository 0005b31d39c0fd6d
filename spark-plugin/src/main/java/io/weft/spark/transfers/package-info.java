/**
 * Cross-host transfers for the tasks of an application: {@link
 * io.weft.spark.transfers.WeftTransfers} gives a task its executor's end, and the driver is where
 * the two ends of a clique meet, without any barrier stage, and learn which executors are gone.
 *
 * <p>{@code ExecutorTransfers} belongs to the executor's plugin, with its transfers and the thread
 * "weft-transfer-departures" that asks the driver who is gone. On the driver nothing blocks: it
 * answers on Spark's message threads and hears on the listeners' thread.
 */
package io.weft.spark.transfers;
