/**
 * Transfers between executors for the tasks of an application. Users call {@link
 * io.weft.spark.transfers.WeftTransfers}; the executor's plugin owns {@link
 * io.weft.spark.transfers.ExecutorTransfers}. The two ends of a clique use the rendezvous on the
 * driver, without a barrier stage.
 *
 * <p>The thread "weft-executor-loss" polls the driver for lost executors, whose transfers fail.
 */
package io.weft.spark.transfers;
