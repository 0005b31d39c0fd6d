/**
 * Weft in the query plan: the rule that chooses a route per exchange, the exchange node of the
 * columns route, its dependency, its RDDs, and the writer and reader that tasks run; and what
 * {@link io.weft.spark.sql.WeftGpu} puts into plans to have batches on GPUs.
 *
 * <p>Nodes, rules and dependencies live on the driver and are used under Spark's own locks; writers
 * and readers belong to one task and its thread. A writer frees its map output unless it was
 * published; a reader lets go of everything it has read when its task ends.
 */
package io.weft.spark.sql;
