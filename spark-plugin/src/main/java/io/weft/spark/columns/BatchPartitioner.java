package io.weft.spark.columns;

import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Says which partition each row of a batch goes to. For one task thread. */
public interface BatchPartitioner {
  /**
   * Finds the partitions of a batch's rows.
   *
   * @param ids receives one id per row, 0 to the number of partitions - 1; at least as long as the
   *     batch has rows
   */
  void partitionIds(ColumnarBatch batch, int[] ids);
}
