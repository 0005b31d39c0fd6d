/**
 * Communicators for the tasks of barrier stages. Users call {@link
 * io.weft.spark.collectives.WeftCollectives#communicator}; the executor's plugin owns {@link
 * io.weft.spark.collectives.ExecutorCollectives}. The tasks of one stage attempt use the rendezvous
 * on the driver, which never blocks: executors poll it until all tasks have come, one has failed,
 * or their deadline has passed.
 *
 * <p>The classes are thread-safe unless they say otherwise. A communicator belongs to its task and
 * is closed at the end of the task, at the latest. The thread "weft-collectives-watch" exists while
 * communicators are open, and checks whether Spark has killed their tasks.
 */
package io.weft.spark.collectives;
