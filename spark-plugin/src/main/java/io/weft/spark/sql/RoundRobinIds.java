package io.weft.spark.sql;

import io.weft.spark.columns.BatchPartitioner;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.random.XORShiftRandom;

/**
 * One row after the other to the next partition, from the start that Spark draws for the map
 * partition. Only for rows in the order of the input: with {@code
 * spark.sql.execution.sortBeforeRepartition} Spark sorts them first.
 *
 * @param numPartitions at least 2
 */
record RoundRobinIds(int numPartitions) implements PartitionIds {
  @Override
  public BatchPartitioner open() {
    int start = new XORShiftRandom(TaskContext.get().partitionId()).nextInt(numPartitions);
    return new Dealer(start, numPartitions);
  }

  @Override
  public boolean orderSensitive() {
    return true;
  }

  /** Holds the position between batches. One task thread. */
  private static final class Dealer implements BatchPartitioner {
    private final int partitions;
    private int position;

    Dealer(int start, int partitions) {
      this.position = start;
      this.partitions = partitions;
    }

    @Override
    public void partitionIds(ColumnarBatch batch, int[] ids) {
      for (int row = 0; row < batch.numRows(); row++) {
        // The position overflows into negative numbers like Spark's, hence floorMod and not %.
        ids[row] = Math.floorMod(++position, partitions);
      }
    }
  }
}
