package io.weft.spark.sql;

import io.weft.spark.columns.BatchPartitioner;
import java.io.Serializable;

/**
 * Assigns the rows of a batch to reduce partitions. Each row gets the same partition as from
 * Spark's exchange. Serialized with the map tasks.
 */
interface PartitionIds extends Serializable {
  /**
   * Creates the function for one map task. It is called on the task's thread and may keep state
   * across batches.
   */
  BatchPartitioner open();

  /** Number of reduce partitions; at least 1. */
  int numPartitions();

  /**
   * Whether the ids depend on the order of rows, so that a repeated map task over unordered input
   * may assign other ids.
   */
  default boolean orderSensitive() {
    return false;
  }
}
