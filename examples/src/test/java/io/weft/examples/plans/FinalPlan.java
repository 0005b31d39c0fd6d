package io.weft.examples.plans;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.PartialReducerPartitionSpec;
import org.apache.spark.sql.execution.ShufflePartitionSpec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.joins.SortMergeJoinExec;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What adaptive execution made of a query, after it has run.
 *
 * @param operators names of the plan's nodes from the root down, without exchanges' routes and
 *     conversions between rows and batches
 * @param readPartitions partitions of all shuffle reads
 * @param skewSplits parts of partitions that were split because of skew
 */
record FinalPlan(List<String> operators, int readPartitions, int skewSplits) {
  private static final int ATTEMPTS = 4;

  /** Nodes that depend on the route, or only wrap others. */
  private static final Set<String> LEFT_OUT =
      Set.of(
          "AdaptiveSparkPlan",
          "ColumnarToRow",
          "InputAdapter",
          "RowToColumnar",
          "WeftColumnarToRow");

  /**
   * Runs a query with and without Weft, and returns how the plans differ. An adaptive plan also
   * depends on which of two stages ends first, so plans differ only if they do {@link #ATTEMPTS}
   * times.
   *
   * @param without plans without Weft that are known already; more are added
   */
  static Optional<String> difference(SparkSession session, String query, List<FinalPlan> without) {
    List<FinalPlan> with = new ArrayList<>();
    Optional<String> difference = Optional.empty();
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (without.size() == attempt) {
        without.add(run(session, query, false));
      }
      with.add(run(session, query, true));
      difference = without.get(attempt).difference(with.get(attempt));
      if (without.stream().anyMatch(one -> with.stream().anyMatch(one::isLike))) {
        return Optional.empty();
      }
    }
    return difference;
  }

  private boolean isLike(FinalPlan other) {
    return difference(other).isEmpty();
  }

  /**
   * Runs queries by name, and returns the differences of their plans.
   *
   * @param without plans without Weft by query, which no route changes; more are added
   */
  static Map<String, String> differences(
      SparkSession session, Map<String, String> queries, Map<String, List<FinalPlan>> without) {
    Map<String, String> differences = new LinkedHashMap<>();
    queries.forEach(
        (name, query) -> {
          List<FinalPlan> known = without.computeIfAbsent(query, key -> new ArrayList<>());
          difference(session, query, known).ifPresent(found -> differences.put(name, found));
        });
    return differences;
  }

  static FinalPlan run(SparkSession session, String query, boolean weft) {
    session.conf().set("spark.weft.enabled", Boolean.toString(weft));
    Dataset<Row> rows = session.sql(query);
    rows.collectAsList();
    return of(((org.apache.spark.sql.classic.Dataset<?>) rows).queryExecution().executedPlan());
  }

  static FinalPlan of(SparkPlan plan) {
    List<SparkPlan> nodes = new ArrayList<>();
    collect(plan, nodes);
    int partitions = 0;
    int splits = 0;
    for (SparkPlan node : nodes) {
      if (node instanceof AQEShuffleReadExec read) {
        for (ShufflePartitionSpec spec : CollectionConverters.asJava(read.partitionSpecs())) {
          partitions++;
          splits += spec instanceof PartialReducerPartitionSpec ? 1 : 0;
        }
      }
    }
    return new FinalPlan(
        nodes.stream().map(FinalPlan::name).filter(name -> !LEFT_OUT.contains(name)).toList(),
        partitions,
        splits);
  }

  private static void collect(SparkPlan plan, List<SparkPlan> nodes) {
    if (plan instanceof QueryStageExec stage) {
      collect(stage.plan(), nodes);
      return;
    }
    nodes.add(plan);
    if (plan instanceof AdaptiveSparkPlanExec adaptive) {
      collect(adaptive.executedPlan(), nodes);
    }
    CollectionConverters.asJava(plan.children()).forEach(child -> collect(child, nodes));
    CollectionConverters.asJava(plan.subqueries()).forEach(child -> collect(child, nodes));
  }

  private static String name(SparkPlan node) {
    String name = node.nodeName().replace("WeftShuffleExchange", "Exchange");
    if (node instanceof AQEShuffleReadExec read) {
      return name
          + (read.isLocalRead() ? " local" : "")
          + (read.hasCoalescedPartition() ? " coalesced" : "")
          + (read.hasSkewedPartition() ? " skewed" : "");
    }
    if (node instanceof SortMergeJoinExec join && join.isSkewJoin()) {
      return name + " of skewed partitions";
    }
    return name.startsWith("WholeStageCodegen") ? "InputAdapter" : name;
  }

  /** Returns how another plan differs; empty if operators are equal and counts are close. */
  Optional<String> difference(FinalPlan other) {
    if (!operators.equals(other.operators)) {
      return Optional.of("operators without Weft " + operators + ", with Weft " + other.operators);
    }
    boolean close =
        isClose(readPartitions, other.readPartitions) && isClose(skewSplits, other.skewSplits);
    return close
        ? Optional.empty()
        : Optional.of(
            "partitions and skew splits without Weft %d and %d, with Weft %d and %d"
                .formatted(readPartitions, skewSplits, other.readPartitions, other.skewSplits));
  }

  /** Within a fifth, or by one. */
  private static boolean isClose(int one, int other) {
    return Math.abs(one - other) <= Math.max(1, Math.max(one, other) / 5);
  }
}
