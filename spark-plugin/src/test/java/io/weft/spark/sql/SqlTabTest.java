package io.weft.spark.sql;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.LocalSpark;
import io.weft.spark.shuffle.InPlaceMetrics;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.ui.SQLAppStatusStore;
import org.apache.spark.sql.execution.ui.SQLPlanMetric;
import org.apache.spark.sql.execution.ui.SparkPlanGraphNode;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import scala.jdk.javaapi.CollectionConverters;

/** The metrics of exchanges of the rows route in Spark's SQL tab. */
class SqlTabTest {
  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    spark = LocalSpark.start(Map.of("spark.sql.autoBroadcastJoinThreshold", "-1"));
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  private static Dataset<Row> rows() {
    return spark.session().range(0, 10_000, 1, 4).selectExpr("id", "id % 10 k");
  }

  /** The exchanges of the last query, and the values that the tab shows. */
  private record Shown(List<SparkPlanGraphNode> exchanges, Map<Object, String> values) {
    static Shown last() throws TimeoutException {
      spark.session().sparkContext().listenerBus().waitUntilEmpty();
      SQLAppStatusStore store =
          ((org.apache.spark.sql.classic.SparkSession) spark.session()).sharedState().statusStore();
      long execution = store.executionsList().last().executionId();
      List<SparkPlanGraphNode> exchanges =
          CollectionConverters.asJava(store.planGraph(execution).allNodes()).stream()
              .filter(node -> node.name().equals("Exchange"))
              .toList();
      return new Shown(exchanges, CollectionConverters.asJava(store.executionMetrics(execution)));
    }

    String value(SparkPlanGraphNode node, String metric) {
      List<SQLPlanMetric> found =
          CollectionConverters.asJava(node.metrics()).stream()
              .filter(shown -> shown.name().equals(metric))
              .toList();
      assertThat(found).as(metric + " of " + node.name()).hasSize(1);
      return values.get((Object) found.get(0).accumulatorId());
    }
  }

  private static long value(ShuffleExchangeExec exchange, String name) {
    SQLMetric metric = exchange.metrics().apply(name);
    return metric.value();
  }

  @Test
  void exchangesOfRowsShowBytesInPlace() throws TimeoutException {
    Dataset<Row> grouped = rows().repartition(6, col("k")).groupBy("k").count();
    Dataset<Row> joined = grouped.join(rows(), "k");
    assertThat(joined.collectAsList()).hasSize(10_000);
    List<ShuffleExchangeExec> exchanges = Plans.sparks(joined);
    assertThat(exchanges)
        .hasSizeGreaterThanOrEqualTo(2)
        .allSatisfy(
            exchange -> {
              assertThat(exchange.getClass()).isEqualTo(RowsExchangeExec.class);
              assertThat(value(exchange, InPlaceMetrics.OWN_BYTES))
                  .isPositive()
                  .isEqualTo(value(exchange, "localBytesRead"));
              assertThat(value(exchange, InPlaceMetrics.IN_PLACE_BYTES))
                  .isEqualTo(value(exchange, InPlaceMetrics.OWN_BYTES));
            });
    Shown shown = Shown.last();
    assertThat(shown.exchanges())
        .hasSameSizeAs(exchanges)
        .allSatisfy(
            node -> {
              String total = "bytes in place, own executor";
              assertThat(shown.value(node, "bytes read in place")).contains("KiB");
              assertThat(shown.value(node, total))
                  .isEqualTo(shown.value(node, "bytes read in place"))
                  .isNotEmpty();
            });
  }

  @Test
  void exchangesBelowAWriteShowBytesInPlace() throws TimeoutException {
    rows().groupBy("k").count().write().format("noop").mode("overwrite").save();
    Shown shown = Shown.last();
    assertThat(shown.exchanges())
        .singleElement()
        .satisfies(node -> assertThat(shown.value(node, "bytes read in place")).contains("B"));
  }

  @Test
  void exchangesAreReusedAsWithoutMetrics() {
    Dataset<Row> counts = rows().groupBy("k").count();
    Dataset<Row> both = counts.union(counts);
    assertThat(both.collectAsList()).hasSize(20);
    assertThat(Plans.nodes(Plans.of(both), ReusedExchangeExec.class)).hasSize(1);
  }

  @Test
  void aQueryWithoutAdaptiveExecutionRunsAsBefore() {
    spark.session().conf().set("spark.sql.adaptive.enabled", "false");
    try {
      Dataset<Row> counts = rows().groupBy("k").count();
      assertThat(counts.collectAsList()).hasSize(10);
      assertThat(Plans.sparks(counts))
          .singleElement()
          .satisfies(
              exchange ->
                  assertThat(CollectionConverters.asJava(exchange.metrics()))
                      .doesNotContainKey(InPlaceMetrics.OWN_BYTES));
    } finally {
      spark.session().conf().unset("spark.sql.adaptive.enabled");
    }
  }
}
