/**
 * The shuffle manager and three routes through the executor's arena. The rows route shuffles packed
 * SQL rows, which readers read in place. The Kryo route shuffles RDDs, whose records may hold
 * tensors. The streams route shuffles RDDs of any serializer.
 *
 * <p>{@link io.weft.spark.shuffle.WeftShuffleManager} chooses the route of each shuffle. A shuffle
 * with its own writer and reader implements {@link io.weft.spark.shuffle.ExchangeDependency}.
 * {@link io.weft.spark.shuffle.ShuffleBlocks} finds the blocks of a reduce task.
 *
 * <p>Writers and readers belong to one task thread, whose completion listener closes them. All
 * tasks of a JVM share the manager.
 */
package io.weft.spark.shuffle;
