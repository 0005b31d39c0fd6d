/**
 * Weft in the query plan: the rule that chooses a route per exchange, and the exchange node of the
 * columns route with its dependency, RDDs, writer and reader. Also the nodes that {@link
 * io.weft.spark.sql.WeftGpu} adds to plans for batches on GPUs.
 *
 * <p>Nodes, rules and dependencies are used on the driver under Spark's locks. Writers and readers
 * belong to one task thread. A writer frees its map output unless it was published. A reader
 * releases all memory when its task ends.
 */
package io.weft.spark.sql;
