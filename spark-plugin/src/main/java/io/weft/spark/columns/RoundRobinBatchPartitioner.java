package io.weft.spark.columns;

import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.random.XORShiftRandom;

/** Deals rows out one after the other, beginning where Spark's own round robin does. */
public final class RoundRobinBatchPartitioner implements BatchPartitioner {
  private final int partitions;
  private int position;

  /**
   * Starts a task's dealing.
   *
   * @param partitions at least 1
   * @param mapPartition the number of the map task's partition, which decides where to begin
   */
  public RoundRobinBatchPartitioner(int partitions, int mapPartition) {
    this.partitions = partitions;
    this.position = new XORShiftRandom(mapPartition).nextInt(partitions);
  }

  @Override
  public void partitionIds(ColumnarBatch batch, int[] ids) {
    int rows = batch.numRows();
    for (int row = 0; row < rows; row++) {
      position = position + 1 == partitions ? 0 : position + 1;
      ids[row] = position;
    }
  }
}
