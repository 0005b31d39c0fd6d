package io.weft.spark.sql;

import io.weft.spark.columns.HashRowPartitioner;
import io.weft.spark.compat.NarrowRDD;
import io.weft.spark.shuffle.RowTarget;
import java.io.Serializable;
import java.util.function.ToIntFunction;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.util.MutablePair;
import scala.Product2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * The rows of a map task with their partitions, each of which depends on its row alone. For one
 * task thread.
 */
final class PartitionedRows extends AbstractIterator<Product2<Object, InternalRow>>
    implements RowTarget.Source {
  private final Iterator<InternalRow> rows;
  private final ToIntFunction<InternalRow> partitionOf;

  /** The boxes of all partitions. */
  private final Integer[] numbers;

  private final MutablePair<Object, InternalRow> pair = new MutablePair<>();
  private final long stage;

  private PartitionedRows(
      Iterator<InternalRow> rows,
      int partitions,
      ToIntFunction<InternalRow> partitionOf,
      long stage) {
    this.rows = rows;
    this.stage = stage;
    this.partitionOf = partitionOf;
    this.numbers = new Integer[partitions];
    for (int partition = 0; partition < partitions; partition++) {
      numbers[partition] = partition;
    }
  }

  /** Creates the function of one map task. Serialized with the tasks. */
  interface TaskPartitioner extends Serializable {
    /** Returns a function for packed rows, for one thread. */
    ToIntFunction<InternalRow> open();
  }

  /**
   * Finds the partitions of packed rows.
   *
   * @param partitions their number, at least 1
   * @param stage see {@link RowTarget.Source#stage}
   * @return rows, each valid until the next one, with their partitions
   */
  static RDD<Product2<Object, InternalRow>> of(
      RDD<InternalRow> rows, int partitions, TaskPartitioner partitioner, long stage) {
    return NarrowRDD.over(
        rows,
        Product2.class,
        input -> new PartitionedRows(input, partitions, partitioner.open(), stage));
  }

  /**
   * As {@link #of}, by hash.
   *
   * @param output the columns of the rows, for which {@link HashRowPartitioner} supports the keys
   */
  static RDD<Product2<Object, InternalRow>> byHash(
      RDD<InternalRow> rows, HashPartitioning partitioning, Seq<Attribute> output, long stage) {
    HashRowPartitioner hash = HashRowPartitioner.of(partitioning, output).orElseThrow();
    return of(
        rows, partitioning.numPartitions(), () -> row -> hash.partition((UnsafeRow) row), stage);
  }

  @Override
  public long stage() {
    return stage;
  }

  @Override
  public int partition(UnsafeRow row) {
    return partitionOf.applyAsInt(row);
  }

  @Override
  public boolean hasNext() {
    return rows.hasNext();
  }

  @Override
  public Product2<Object, InternalRow> next() {
    InternalRow row = rows.next();
    return pair.update(numbers[partitionOf.applyAsInt(row)], row);
  }
}
