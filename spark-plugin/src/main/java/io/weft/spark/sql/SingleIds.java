package io.weft.spark.sql;

import io.weft.spark.columns.BatchPartitioner;
import java.util.Arrays;

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
