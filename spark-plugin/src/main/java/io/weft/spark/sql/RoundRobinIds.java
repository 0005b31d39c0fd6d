package io.weft.spark.sql;

import io.weft.spark.columns.BatchPartitioner;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.random.XORShiftRandom;

/**
 * Assigns each row to the next partition, beginning with the start that Spark chooses for the map
 * partition. It is used only without {@code spark.sql.execution.sortBeforeRepartition}, with which
 * Spark sorts rows first.
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

  /** Keeps the position between batches. For one task thread. */
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
        // Like Spark's, the position overflows into negative numbers, so this uses floorMod.
        ids[row] = Math.floorMod(++position, partitions);
      }
    }
  }
}
