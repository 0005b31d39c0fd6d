package io.weft.spark.sql;

import io.weft.spark.columns.BatchPartitioner;
import io.weft.spark.columns.HashBatchPartitioner;
import io.weft.spark.compat.NarrowRDD;
import io.weft.spark.compat.ScalaInterop;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.RangePartitioner;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.LazilyGeneratedOrdering;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.random.XORShiftRandom;
import scala.Product2;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

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
   * Partitions by ranges of the sort keys, between bounds that Spark's range partitioner samples.
   *
   * @param bounds holds the sampled bounds
   * @param keys the sort keys over {@code output}
   * @param output the columns of the batches
   */
  record RangeIds(
      RangePartitioner<InternalRow, Object> bounds, Seq<Expression> keys, Seq<Attribute> output)
      implements PartitionIds {

    /** Samples the keys of the input with a Spark job on the calling thread. */
    static RangeIds sample(
        RangePartitioning partitioning, Seq<Attribute> output, RDD<ColumnarBatch> input) {
      List<SortOrder> orders = CollectionConverters.asJava(partitioning.ordering());
      List<Expression> keys = new ArrayList<>();
      List<SortOrder> keyOrders = new ArrayList<>();
      for (SortOrder order : orders) {
        keyOrders.add(overKey(order, keys.size()));
        keys.add(order.child());
      }
      Seq<Expression> keySeq = ScalaInterop.seq(keys);
      RangePartitioner<InternalRow, Object> bounds =
          new RangePartitioner<>(
              partitioning.numPartitions(),
              keyedBy(keySeq, output, input),
              true,
              SQLConf.get().rangeExchangeSampleSizePerPartition(),
              new LazilyGeneratedOrdering(ScalaInterop.seq(keyOrders)),
              ScalaInterop.tag(InternalRow.class));
      return new RangeIds(bounds, keySeq, output);
    }

    private static SortOrder overKey(SortOrder order, int key) {
      Expression child =
          new BoundReference(key, order.child().dataType(), order.child().nullable());
      return order.copy(
          child, order.direction(), order.nullOrdering(), order.sameOrderExpressions());
    }

    /** Pairs of (copied key, null), one per row, for the sample. */
    private static RDD<Product2<InternalRow, Object>> keyedBy(
        Seq<Expression> keys, Seq<Attribute> output, RDD<ColumnarBatch> input) {
      return NarrowRDD.over(
          input,
          Product2.class,
          batches -> {
            UnsafeProjection projection = UnsafeProjection.create(keys, output);
            return batches.flatMap(
                batch ->
                    CollectionConverters.asScala(batch.rowIterator())
                        .map(row -> new Tuple2<>(projection.apply(row).copy(), null)));
          });
    }

    @Override
    public BatchPartitioner open() {
      UnsafeProjection projection = UnsafeProjection.create(keys, output);
      return (batch, ids) -> {
        Iterator<InternalRow> rows = batch.rowIterator();
        for (int row = 0; rows.hasNext(); row++) {
          UnsafeRow key = projection.apply(rows.next());
          ids[row] = bounds.getPartition(key);
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
