package io.weft.spark.columns;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's hash partitioning, column by column. The Murmur3 hash of each key column is the seed for
 * the next, and nulls do not change it. The non-negative remainder is the partition.
 */
public final class HashBatchPartitioner implements BatchPartitioner {
  private static final int SEED = 42;

  private final int[] ordinals;
  private final ColumnHash[] hashes;
  private final PartitionModulo partitions;

  private HashBatchPartitioner(int[] ordinals, ColumnHash[] hashes, int partitions) {
    this.ordinals = ordinals;
    this.hashes = hashes;
    this.partitions = new PartitionModulo(partitions);
  }

  /**
   * Creates a partitioner that gives the same partitions as Spark's partitioning.
   *
   * @param output the columns of the batches
   * @return a column-by-column partitioner if all keys are plain columns of simple types, else one
   *     that evaluates Spark's expression row by row
   */
  public static BatchPartitioner create(HashPartitioning partitioning, Seq<Attribute> output) {
    List<Attribute> columns = CollectionConverters.asJava(output);
    List<Integer> ordinals = new ArrayList<>();
    List<ColumnHash> hashes = new ArrayList<>();
    for (Expression key : CollectionConverters.asJava(partitioning.expressions())) {
      int ordinal = key instanceof AttributeReference column ? ordinal(column, columns) : -1;
      ColumnHash hash = ordinal < 0 ? null : ColumnHash.of(key.dataType());
      if (hash == null) {
        return new RowBatchPartitioner(partitioning.partitionIdExpression(), output);
      }
      ordinals.add(ordinal);
      hashes.add(hash);
    }
    return new HashBatchPartitioner(
        ordinals.stream().mapToInt(Integer::intValue).toArray(),
        hashes.toArray(ColumnHash[]::new),
        partitioning.numPartitions());
  }

  /**
   * Returns the indexes of the hashed columns, in order.
   *
   * @param output the columns of the batches
   * @return empty if a partitioning expression is not a plain column
   */
  public static Optional<int[]> plainColumns(HashPartitioning partitioning, Seq<Attribute> output) {
    List<Attribute> columns = CollectionConverters.asJava(output);
    int[] ordinals =
        CollectionConverters.asJava(partitioning.expressions()).stream()
            .mapToInt(key -> key instanceof AttributeReference one ? ordinal(one, columns) : -1)
            .toArray();
    return Arrays.stream(ordinals).allMatch(ordinal -> ordinal >= 0)
        ? Optional.of(ordinals)
        : Optional.empty();
  }

  private static int ordinal(AttributeReference key, List<Attribute> columns) {
    for (int i = 0; i < columns.size(); i++) {
      if (columns.get(i).exprId().equals(key.exprId())) {
        return i;
      }
    }
    return -1;
  }

  @Override
  public void partitionIds(ColumnarBatch batch, int[] ids) {
    int rows = batch.numRows();
    Arrays.fill(ids, 0, rows, SEED);
    for (int key = 0; key < hashes.length; key++) {
      hashes[key].update(batch.column(ordinals[key]), rows, ids);
    }
    partitions.apply(ids, rows);
  }
}
