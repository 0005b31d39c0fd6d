package io.weft.spark.compat;

import java.io.Serializable;
import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.DeterministicLevel;
import org.apache.spark.rdd.RDD;
import scala.Enumeration;
import scala.collection.Iterator;

/**
 * Maps each partition of its parent with a function. Spark's own class for this is internal, and
 * its signature differs between Spark versions.
 *
 * @param <T> elements of the parent
 * @param <U> elements of this RDD
 */
public final class NarrowRDD<T, U> extends RDD<U> {
  /** A function from a partition's elements to this RDD's. Serialized with the tasks. */
  public interface PartitionFunction<T, U> extends Serializable {
    Iterator<U> apply(Iterator<T> elements);
  }

  private RDD<T> parent;
  private final PartitionFunction<T, U> function;
  private final boolean orderSensitive;

  private NarrowRDD(
      RDD<T> parent, Class<?> type, PartitionFunction<T, U> function, boolean orderSensitive) {
    super(parent, ScalaInterop.erasedTag(type));
    this.parent = parent;
    this.function = function;
    this.orderSensitive = orderSensitive;
  }

  /**
   * Creates an RDD whose elements do not depend on the order of the parent's elements. Only their
   * order does.
   */
  public static <T, U> RDD<U> over(RDD<T> parent, Class<?> type, PartitionFunction<T, U> function) {
    return new NarrowRDD<>(parent, type, function, false);
  }

  /** Creates an RDD in which the result of an element may depend on earlier elements. */
  public static <T, U> RDD<U> orderSensitive(
      RDD<T> parent, Class<?> type, PartitionFunction<T, U> function) {
    return new NarrowRDD<>(parent, type, function, true);
  }

  @Override
  public Partition[] getPartitions() {
    return parent.partitions();
  }

  @Override
  public Iterator<U> compute(Partition split, TaskContext context) {
    return function.apply(parent.iterator(split, context));
  }

  @Override
  public void clearDependencies() {
    super.clearDependencies();
    parent = null;
  }

  /**
   * Returns indeterminate for an order-sensitive function over unordered input, such as a
   * shuffle's. A repeated task then gives other results, and Spark must roll back all stages that
   * read the first ones.
   */
  @Override
  public Enumeration.Value getOutputDeterministicLevel() {
    boolean unordered = parent.outputDeterministicLevel().equals(DeterministicLevel.UNORDERED());
    return orderSensitive && unordered
        ? DeterministicLevel.INDETERMINATE()
        : super.getOutputDeterministicLevel();
  }
}
