package io.weft.spark.columns;

import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Computes the partition of each row of a batch. For one task thread. */
public interface BatchPartitioner {
  /**
   * Computes the partitions of a batch's rows.
   *
   * @param ids receives one id per row, 0 to the number of partitions - 1; at least one element per
   *     row
   */
  void partitionIds(ColumnarBatch batch, int[] ids);
}
