/**
 * Weft in the query plan. {@link io.weft.spark.sql.WeftSessionExtensions} adds the rules to every
 * session; they choose a route per exchange. {@link io.weft.spark.sql.WeftShuffleExchangeExec} is
 * the exchange node of the columns route. {@link io.weft.spark.sql.WeftGpu} puts batches of a query
 * on GPUs.
 *
 * <p>Nodes, rules and dependencies are used on the driver under Spark's locks. Writers and readers
 * belong to one task thread. A writer frees its map output unless it was published. A reader
 * releases all memory when its task ends.
 */
package io.weft.spark.sql;
