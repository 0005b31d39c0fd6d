/**
 * The rendezvous on the driver. The members of a group bring a message to each round, and every
 * member gets the table of all messages or the reason of the failure. Start with {@link
 * io.weft.spark.rendezvous.RendezvousService}, which answers calls; with {@link
 * io.weft.spark.rendezvous.StageRendezvous}, which uses it for barrier stages; and with {@link
 * io.weft.spark.rendezvous.ExecutorLossMonitor}, which reports lost executors to an executor.
 *
 * <p>The driver never blocks here: members poll until the round is complete, has failed, or their
 * own deadline has passed. The classes are thread-safe unless they say otherwise.
 */
package io.weft.spark.rendezvous;
