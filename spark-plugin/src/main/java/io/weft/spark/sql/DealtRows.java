package io.weft.spark.sql;

import io.weft.spark.compat.NarrowRDD;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.NoSuchElementException;
import java.util.stream.IntStream;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.util.MutablePair;
import org.apache.spark.util.random.XORShiftRandom;
import scala.Product2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * The rows of a map task with their partitions, for a repartition without keys. Each partition gets
 * as many rows as any other, or one more. As in Spark's repartition, which sorts rows first, the
 * partition of a row does not depend on the order of rows. So a repeated task over unordered input
 * assigns the same partitions.
 *
 * <p>For one task thread. The first call reads all rows.
 */
final class DealtRows extends AbstractIterator<Product2<Object, InternalRow>> {
  private final Iterator<InternalRow> input;
  private final int partitions;
  private final TaskContext context;
  private final Integer[] numbers;
  private final MutablePair<Object, InternalRow> pair = new MutablePair<>();
  private RowBuffer buffer;
  private HashQuantiles quantiles;
  private UnsafeRow row;
  private long left = -1;

  private DealtRows(Iterator<InternalRow> input, int partitions, TaskContext context) {
    this.input = input;
    this.partitions = partitions;
    this.context = context;
    this.numbers = IntStream.range(0, partitions).boxed().toArray(Integer[]::new);
  }

  /**
   * Deals the rows of each map partition.
   *
   * @param rows packed rows
   * @param partitions at least 1
   * @return rows, each valid until the next one, with their partitions
   */
  static RDD<Product2<Object, InternalRow>> of(RDD<InternalRow> rows, int partitions) {
    return NarrowRDD.over(
        rows, Product2.class, input -> new DealtRows(input, partitions, TaskContext.get()));
  }

  @Override
  public boolean hasNext() {
    if (left < 0) {
      deal();
    }
    if (left == 0) {
      close();
    }
    return left > 0;
  }

  /** The first partition is the one that Spark chooses. */
  private void deal() {
    buffer = new RowBuffer(context);
    try {
      while (input.hasNext()) {
        UnsafeRow next = (UnsafeRow) input.next();
        if (row == null) {
          row = new UnsafeRow(next.numFields());
        }
        buffer.append(next);
      }
      left = buffer.rows();
      if (left > 0) {
        int start = new XORShiftRandom(context.partitionId()).nextInt(partitions) + 1;
        quantiles = new HashQuantiles(buffer, partitions, start);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("Rows cannot be spilled for a repartition", e);
    }
  }

  @Override
  public Product2<Object, InternalRow> next() {
    if (!hasNext()) {
      throw new NoSuchElementException("all rows have been dealt");
    }
    left--;
    try {
      boolean found = buffer.next();
      if (!found) {
        throw new IllegalStateException("rows of a repartition are missing: " + (left + 1));
      }
    } catch (IOException e) {
      throw new UncheckedIOException("Spilled rows of a repartition cannot be read", e);
    }
    buffer.point(row);
    return pair.update(numbers[quantiles.partition(buffer.hash())], row);
  }

  private void close() {
    if (quantiles != null) {
      quantiles.close();
    }
    buffer.close();
  }
}
