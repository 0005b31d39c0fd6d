package io.weft.spark.compat;

import java.lang.reflect.Field;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.metric.SQLMetric;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The node of an exchange whose shuffle Spark creates now, on the driver. Its plan stays the same:
 * only its map of metrics is replaced. Spark reads that map when it shows the plan again, which
 * adaptive execution does after each stage. Thread-safe.
 */
public final class RunningExchange {
  private static final Field METRICS;

  static {
    try {
      METRICS = ShuffleExchangeExec.class.getDeclaredField("metrics");
      METRICS.setAccessible(true);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private final ShuffleExchangeExec node;

  private RunningExchange(ShuffleExchangeExec node) {
    this.node = node;
  }

  /**
   * Finds the node in the query of this thread. Takes no lock of a node.
   *
   * @param dataSize a metric of the node
   * @return empty without adaptive execution, whose plans are shown only before their shuffles, and
   *     for an exchange of a cached table
   */
  public static Optional<RunningExchange> find(SparkContext context, SQLMetric dataSize) {
    String execution = context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
    QueryExecution query =
        execution == null ? null : SQLExecution.getQueryExecution(Long.parseLong(execution));
    if (query == null) {
      return Optional.empty();
    }
    ArrayDeque<Visit> left = new ArrayDeque<>();
    left.add(new Visit(query.executedPlan(), false));
    while (!left.isEmpty()) {
      Visit visit = left.remove();
      if (visit.adaptive()
          && visit.plan() instanceof ShuffleExchangeExec exchange
          && has(exchange, dataSize)) {
        return Optional.of(new RunningExchange(exchange));
      }
      visit.addBelow(left);
    }
    return Optional.empty();
  }

  /**
   * A node of the query's plan. Its root may be a command that writes the result of a query.
   *
   * @param adaptive whether adaptive execution runs it
   */
  private record Visit(SparkPlan plan, boolean adaptive) {
    void addBelow(Collection<Visit> left) {
      if (plan instanceof AdaptiveSparkPlanExec root) {
        left.add(new Visit(root.executedPlan(), true));
      } else if (plan instanceof QueryStageExec stage) {
        left.add(new Visit(stage.plan(), adaptive));
      }
      CollectionConverters.asJava(plan.children())
          .forEach(child -> left.add(new Visit(child, adaptive)));
      CollectionConverters.asJava(plan.subqueries())
          .forEach(subquery -> left.add(new Visit(subquery, adaptive)));
    }
  }

  private static boolean has(ShuffleExchangeExec exchange, SQLMetric dataSize) {
    scala.collection.immutable.Map<String, SQLMetric> metrics = metrics(exchange);
    return metrics != null && metrics.getOrElse("dataSize", () -> null) == dataSize;
  }

  /** Returns null before Spark has created the metrics. */
  @SuppressWarnings("unchecked")
  private static scala.collection.immutable.Map<String, SQLMetric> metrics(
      ShuffleExchangeExec exchange) {
    try {
      return (scala.collection.immutable.Map<String, SQLMetric>) METRICS.get(exchange);
    } catch (IllegalAccessException e) {
      throw new IllegalStateException("The metrics of an exchange cannot be read", e);
    }
  }

  /** Adds metrics to the node. */
  public void add(Map<String, SQLMetric> more) {
    Map<String, SQLMetric> all = new LinkedHashMap<>(CollectionConverters.asJava(metrics(node)));
    all.putAll(more);
    try {
      METRICS.set(node, ScalaInterop.map(all));
    } catch (IllegalAccessException e) {
      throw new IllegalStateException("The metrics of an exchange cannot be set", e);
    }
  }
}
