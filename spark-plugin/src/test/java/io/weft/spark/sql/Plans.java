package io.weft.spark.sql;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import scala.jdk.javaapi.CollectionConverters;

/** Looks into physical plans, through the stages of adaptive execution. */
final class Plans {
  private Plans() {}

  /** The plan as it stands: after a query has run, the plan that was run. */
  static SparkPlan of(Dataset<?> dataset) {
    return ((org.apache.spark.sql.classic.Dataset<?>) dataset).queryExecution().executedPlan();
  }

  /** All nodes of a kind, parents first; what a reused exchange points to counts once. */
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
    return nodes(of(dataset), WeftShuffleExchangeExec.class);
  }

  /** Exchanges that Spark carries, with or without a remark of ours. */
  static List<ShuffleExchangeExec> sparks(Dataset<?> dataset) {
    return nodes(of(dataset), ShuffleExchangeExec.class).stream()
        .filter(exchange -> !(exchange instanceof WeftShuffleExchangeExec))
        .toList();
  }
}
