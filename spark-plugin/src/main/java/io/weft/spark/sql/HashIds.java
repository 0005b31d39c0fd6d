package io.weft.spark.sql;

import io.weft.spark.columns.BatchPartitioner;
import io.weft.spark.columns.HashBatchPartitioner;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import scala.collection.immutable.Seq;

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
