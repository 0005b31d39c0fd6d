package io.weft.spark.sql;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import scala.jdk.javaapi.CollectionConverters;

/** Finds nodes in physical plans, including the stages of adaptive execution. */
final class Plans {
  private Plans() {}

  /** The current plan: after a query has run, the executed plan. */
  static SparkPlan of(Dataset<?> dataset) {
    return ((org.apache.spark.sql.classic.Dataset<?>) dataset).queryExecution().executedPlan();
  }

  /** The plan before adaptive execution changed it. */
  static SparkPlan first(Dataset<?> dataset) {
    SparkPlan plan = of(dataset);
    return plan instanceof AdaptiveSparkPlanExec adaptive ? adaptive.initialPlan() : plan;
  }

  /** All nodes of a class, parents first. The target of reused exchanges counts once. */
  static <T> List<T> nodes(SparkPlan plan, Class<T> kind) {
    List<T> found = new ArrayList<>();
    collect(plan, kind, found);
    return found;
  }

  private static <T> void collect(SparkPlan plan, Class<T> kind, List<T> found) {
    if (kind.isInstance(plan)) {
      found.add(kind.cast(plan));
    }
    if (plan instanceof AdaptiveSparkPlanExec adaptive) {
      collect(adaptive.executedPlan(), kind, found);
    } else if (plan instanceof QueryStageExec stage) {
      collect(stage.plan(), kind, found);
    }
    CollectionConverters.asJava(plan.children()).forEach(child -> collect(child, kind, found));
    CollectionConverters.asJava(plan.subqueries())
        .forEach(subquery -> collect(subquery, kind, found));
  }

  static List<WeftShuffleExchangeExec> wefts(Dataset<?> dataset) {
    return wefts(of(dataset));
  }

  static List<WeftShuffleExchangeExec> wefts(SparkPlan plan) {
    return nodes(plan, WeftShuffleExchangeExec.class);
  }

  /** Exchanges of Spark, with or without a remark of Weft. */
  static List<ShuffleExchangeExec> sparks(Dataset<?> dataset) {
    return sparks(of(dataset));
  }

  static List<ShuffleExchangeExec> sparks(SparkPlan plan) {
    return nodes(plan, ShuffleExchangeExec.class).stream()
        .filter(exchange -> !(exchange instanceof WeftShuffleExchangeExec))
        .toList();
  }
}
