package io.weft.spark.columns;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's hash partitioning, column by column. The Murmur3 hash of each key column is the seed for
 * the next, and nulls do not change it. The non-negative remainder is the partition.
 */
public final class HashBatchPartitioner implements BatchPartitioner {
  static final int SEED = 42;

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

  /** Computes partition ids row by row with generated code of Spark's expression. */
  static final class RowBatchPartitioner implements BatchPartitioner {
    private final UnsafeProjection projection;

    /**
     * @param partitionId an expression of type int
     * @param output the columns of the batches
     */
    RowBatchPartitioner(Expression partitionId, Seq<Attribute> output) {
      projection =
          UnsafeProjection.create(
              CollectionConverters.asScala(List.of(partitionId)).toSeq(), output);
    }

    @Override
    public void partitionIds(ColumnarBatch batch, int[] ids) {
      Iterator<InternalRow> rows = batch.rowIterator();
      for (int row = 0; rows.hasNext(); row++) {
        ids[row] = projection.apply(rows.next()).getInt(0);
      }
    }
  }

  /**
   * Computes the non-negative remainder of hashes by a constant divisor without a division: Lemire,
   * Kaser and Kurz, "Faster remainder by direct computation" (2019). Immutable.
   */
  static final class PartitionModulo implements Serializable {
    private static final long serialVersionUID = 1L;

    private final int divisor;

    /** 2⁶⁴ / divisor, rounded up; 0 for the divisor 1, whose remainder is always 0. */
    private final long inverse;

    /** Excess of a negative hash's remainder when the hash is treated as unsigned. */
    private final int unsignedExcess;

    /**
     * @param divisor at least 1
     */
    PartitionModulo(int divisor) {
      this.divisor = divisor;
      this.inverse = Long.divideUnsigned(-1L, divisor) + 1;
      this.unsignedExcess = (int) ((1L << Integer.SIZE) % divisor);
    }

    /** Replaces hashes by their remainders. */
    void apply(int[] hashes, int count) {
      for (int i = 0; i < count; i++) {
        hashes[i] = of(hashes[i]);
      }
    }

    int of(int hash) {
      long fraction = inverse * (hash & 0xffffffffL);
      // The fraction is unsigned, but multiplyHigh treats it as signed.
      long high = Math.multiplyHigh(fraction, divisor) + (fraction >> 63 & divisor);
      int remainder = (int) high - (hash >> 31 & unsignedExcess);
      return remainder + (remainder >> 31 & divisor);
    }
  }
}
