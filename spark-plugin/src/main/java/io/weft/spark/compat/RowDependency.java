package io.weft.spark.compat;

import java.lang.reflect.Field;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.execution.UnsafeRowSerializer;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec$;
import org.apache.spark.sql.execution.metric.SQLMetric;
import scala.Product2;

/**
 * Creates the dependency of an exchange whose rows already have their partitions. Spark creates it,
 * with the serializer, the metrics and the row checksums of the running Spark version. Only its
 * input is replaced. Stateless.
 */
public final class RowDependency {
  private static final Field RECORDS;

  static {
    try {
      RECORDS = ShuffleDependency.class.getDeclaredField("_rdd");
      RECORDS.setAccessible(true);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private RowDependency() {}

  /**
   * Creates a dependency.
   *
   * @param exchange that reads it
   * @param rows the input of the exchange, of packed rows
   * @param records the same rows with their partitions; a map partition for each of {@code rows}
   * @param partitions number of reduce partitions, at least 1
   */
  public static ShuffleDependency<Object, InternalRow, InternalRow> of(
      ShuffleExchangeExec exchange,
      RDD<InternalRow> rows,
      RDD<Product2<Object, InternalRow>> records,
      int partitions) {
    scala.collection.immutable.Map<String, SQLMetric> metrics = exchange.metrics();
    ShuffleDependency<Object, InternalRow, InternalRow> dependency =
        ShuffleExchangeExec$.MODULE$.prepareShuffleDependency(
            rows,
            exchange.child().output(),
            // Its expressions are not evaluated, because the records have partitions.
            new HashPartitioning(ScalaInterop.seq(), partitions),
            new UnsafeRowSerializer(exchange.child().output().size(), metrics.apply("dataSize")),
            metrics);
    try {
      RECORDS.set(dependency, records);
    } catch (IllegalAccessException e) {
      throw new IllegalStateException("The input of a shuffle cannot be set", e);
    }
    return dependency;
  }
}
