package io.weft.spark.sql;

import io.weft.spark.columns.BatchPartitioner;
import io.weft.spark.columns.HashBatchPartitioner;
import java.io.Serializable;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.random.XORShiftRandom;
import scala.collection.immutable.Seq;

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

  /** Assigns all rows to one partition. */
  record SingleIds() implements PartitionIds {
    @Override
    public BatchPartitioner open() {
      return (batch, ids) -> Arrays.fill(ids, 0, batch.numRows(), 0);
    }

    @Override
    public int numPartitions() {
      return 1;
    }
  }

  /**
   * Partitions by ranges of the sort keys, between bounds from a sample.
   *
   * @param bounds the sampled bounds
   */
  record RangeIds(RangeBounds bounds) implements PartitionIds {
    @Override
    public BatchPartitioner open() {
      RangeBounds.Search search = bounds.search();
      return (batch, ids) -> {
        Iterator<InternalRow> rows = batch.rowIterator();
        for (int row = 0; rows.hasNext(); row++) {
          ids[row] = search.partition(rows.next());
        }
      };
    }

    /** May be less than requested, because few distinct keys give few bounds. */
    @Override
    public int numPartitions() {
      return bounds.numPartitions();
    }
  }

  /**
   * Assigns each row to the next partition, beginning with the start that Spark chooses for the map
   * partition. It is used only without {@code spark.sql.execution.sortBeforeRepartition}, with
   * which Spark sorts rows first.
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

  /** Spark's hash of the partitioning expressions, modulo the number of partitions. */
  record HashIds(HashPartitioning partitioning, Seq<Attribute> output) implements PartitionIds {
    @Override
    public BatchPartitioner open() {
      return HashBatchPartitioner.create(partitioning, output);
    }

    @Override
    public int numPartitions() {
      return partitioning.numPartitions();
    }
  }
}
