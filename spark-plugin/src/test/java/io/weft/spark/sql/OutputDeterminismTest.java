package io.weft.spark.sql;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The determinism that map stages report to the scheduler. When an indeterminate stage runs again,
 * the scheduler rolls back all readers of its first output. A stage wrongly reported as determinate
 * loses rows and duplicates others.
 */
class OutputDeterminismTest {
  @RegisterExtension static final SqlSpark SPARK = new SqlSpark();

  /** Round robin assigns rows in the order in which another shuffle's reader receives them. */
  @ParameterizedTest(name = "route {0}, rows sorted before a repartition: {1}")
  @CsvSource({"rows, false", "columns, false", "rows, true", "columns, true"})
  void everyMapStageIsAsDeterminateAsSparksOwn(String route, boolean sorted) {
    List<String> sparks = levels("rows", sorted, false);
    assertThat(levels(route, sorted, true)).isEqualTo(sparks);
    String dealt = sorted ? "UNORDERED" : "INDETERMINATE";
    assertThat(sparks).containsExactly("DETERMINATE", dealt, dealt);
  }

  /** Levels of all map stages, in order. */
  private static List<String> levels(String route, boolean sorted, boolean weft) {
    return SPARK.with(
        Map.of(
            "spark.weft.route",
            route,
            "spark.weft.enabled",
            Boolean.toString(weft),
            "spark.sql.execution.sortBeforeRepartition",
            Boolean.toString(sorted),
            "spark.sql.adaptive.enabled",
            "false",
            // Otherwise the optimizer keeps only the last of several repartitions.
            "spark.sql.optimizer.excludedRules",
            "org.apache.spark.sql.catalyst.optimizer.CollapseRepartition"),
        () -> levels(weft && route.equals("columns")));
  }

  private static List<String> levels(boolean columns) {
    Dataset<?> rows =
        SPARK
            .session()
            .range(100)
            .selectExpr("id", "id % 9 AS k")
            .repartition(4, col("k"))
            .repartition(3)
            .repartition(5, col("id"));
    List<ShuffleExchangeExec> exchanges = Plans.nodes(Plans.of(rows), ShuffleExchangeExec.class);
    assertThat(exchanges)
        .hasSize(3)
        .allMatch(exchange -> columns == exchange instanceof WeftShuffleExchangeExec);
    List<String> levels =
        new ArrayList<>(
            exchanges.stream()
                .map(exchange -> exchange.shuffleDependency().rdd())
                .map(rdd -> rdd.outputDeterministicLevel().toString())
                .toList());
    Collections.reverse(levels);
    return levels;
  }
}
