package io.weft.spark.sql;

import java.io.Serializable;
import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.DeterministicLevel;
import org.apache.spark.rdd.RDD;
import scala.Enumeration;
import scala.collection.Iterator;

/**
 * Maps each partition of its parent by a function. Spark's own counterpart is internal, and its
 * signature differs between the versions that Weft runs on.
 *
 * @param <T> what the parent holds
 * @param <U> what this RDD holds
 */
public final class NarrowRDD<T, U> extends RDD<U> {
  /** A function from a partition's elements to this RDD's. Travels to the tasks. */
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

  /** The result does not depend on the order of the parent's elements, beyond its own order. */
  public static <T, U> RDD<U> over(RDD<T> parent, Class<?> type, PartitionFunction<T, U> function) {
    return new NarrowRDD<>(parent, type, function, false);
  }

  /** What becomes of an element may depend on the elements before it. */
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
   * An order-sensitive function over input whose order may change, such as a shuffle's, gives other
   * results when a task is run again: Spark then has to roll back everything that read the first
   * ones.
   */
  @Override
  public Enumeration.Value getOutputDeterministicLevel() {
    boolean unordered = parent.outputDeterministicLevel().equals(DeterministicLevel.UNORDERED());
    return orderSensitive && unordered
        ? DeterministicLevel.INDETERMINATE()
        : super.getOutputDeterministicLevel();
  }
}
