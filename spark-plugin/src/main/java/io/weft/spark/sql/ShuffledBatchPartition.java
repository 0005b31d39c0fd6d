package io.weft.spark.sql;

import org.apache.spark.Partition;
import org.apache.spark.sql.execution.CoalescedMapperPartitionSpec;
import org.apache.spark.sql.execution.CoalescedPartitionSpec;
import org.apache.spark.sql.execution.PartialMapperPartitionSpec;
import org.apache.spark.sql.execution.PartialReducerPartitionSpec;
import org.apache.spark.sql.execution.ShufflePartitionSpec;

/**
 * A partition of a {@link ShuffledBatchRDD}: the blocks of a range of map outputs and a range of
 * reduce partitions.
 *
 * @param index position in the RDD
 * @param blocks the blocks that it reads
 */
record ShuffledBatchPartition(int index, Blocks blocks) implements Partition {

  /**
   * Map outputs [startMap, endMap) by reduce partitions [startReduce, endReduce). All map outputs
   * are [0, {@link Integer#MAX_VALUE}).
   */
  record Blocks(int startMap, int endMap, int startReduce, int endReduce)
      implements java.io.Serializable {
    boolean allMaps() {
      return startMap == 0 && endMap == Integer.MAX_VALUE;
    }
  }

  static ShuffledBatchPartition of(int index, ShufflePartitionSpec spec) {
    return new ShuffledBatchPartition(index, blocks(spec));
  }

  private static Blocks blocks(ShufflePartitionSpec spec) {
    if (spec instanceof CoalescedPartitionSpec s) {
      return new Blocks(0, Integer.MAX_VALUE, s.startReducerIndex(), s.endReducerIndex());
    }
    if (spec instanceof PartialReducerPartitionSpec s) {
      int reducer = s.reducerIndex();
      return new Blocks(s.startMapIndex(), s.endMapIndex(), reducer, reducer + 1);
    }
    if (spec instanceof PartialMapperPartitionSpec s) {
      int map = s.mapIndex();
      return new Blocks(map, map + 1, s.startReducerIndex(), s.endReducerIndex());
    }
    if (spec instanceof CoalescedMapperPartitionSpec s) {
      return new Blocks(s.startMapIndex(), s.endMapIndex(), 0, s.numReducers());
    }
    throw new IllegalArgumentException(
        "Unknown kind of shuffle partition " + spec.getClass().getName() + ": " + spec);
  }
}
