package io.weft.spark.sql;

import io.weft.spark.columns.BatchPartitioner;
import java.io.Serializable;

/**
 * How a shuffle assigns the rows of a batch to its reduce partitions; the same row gets the same
 * partition as from Spark's own exchange. Travels to the map tasks.
 */
interface PartitionIds extends Serializable {
  /**
   * The function for one map task. Call it on the task's thread; it may keep state across batches.
   */
  BatchPartitioner open();

  /** Number of reduce partitions; at least 1. */
  int numPartitions();

  /**
   * Whether the ids depend on the order in which rows arrive, so that a map task that is run again
   * over unordered input may assign them differently.
   */
  default boolean orderSensitive() {
    return false;
  }
}
