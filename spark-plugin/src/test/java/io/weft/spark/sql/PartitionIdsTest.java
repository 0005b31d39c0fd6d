package io.weft.spark.sql;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Every row gets the same partition as from Spark. */
class PartitionIdsTest {
  @RegisterExtension static final SqlSpark SPARK = new SqlSpark();

  @TempDir static Path folder;

  @BeforeAll
  static void tables() {
    SPARK.with(
        Map.of("spark.weft.enabled", "false"),
        () -> {
          SampleTables.create(SPARK.session(), folder);
          return null;
        });
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "repartition(7, id)",
        "repartition(7, k)",
        "repartition(5, g, sh, b)",
        "repartition(6, s)",
        "repartition(6, f, x)",
        "repartition(4, d)",
        "repartition(4, big)",
        "repartition(9, dt, ts, ntz)",
        "repartition(3, bin)",
        "repartition(3, arr)",
        "repartition(8, st)",
        "repartition(5, nested)",
        "repartition(5, span, months)",
        "repartition(5, nothing_string, constant)",
        "distribute by mod(k, 10), upper(s)",
        "repartition(80, id, s)",
        "repartition(1)",
        "repartition(1, id)",
        "repartition(6)",
        "repartition(64)",
        "repartition_by_range(5, x)",
        "repartition_by_range(5, k, s)",
        "repartition_by_range(7, s, big)",
        "repartition_by_range(50, b)"
      })
  void areSparks(String hint) {
    for (String table : new String[] {"facts", "made"}) {
      Supplier<Dataset<Row>> plan = () -> SPARK.session().sql(query(hint, table));
      List<String> sparks =
          SPARK.with(settings("rows", false), () -> RowTexts.unordered(plan.get()));
      for (String route : new String[] {"columns", "rows"}) {
        Map<String, String> settings = settings(route, true);
        Dataset<Row> wefts = SPARK.with(settings, () -> planned(plan.get()));
        assertThat(Plans.wefts(wefts)).hasSize(route.equals("columns") ? 1 : 0);
        assertThat(SPARK.with(settings, () -> RowTexts.unordered(wefts)))
            .as(table + " by the route of " + route)
            .isEqualTo(sparks);
      }
    }
  }

  private static String query(String hint, String table) {
    String shuffled =
        hint.startsWith("distribute")
            ? "select * from %s %s".formatted(table, hint)
            : "select /*+ %s */ * from %s".formatted(hint, table);
    return "select spark_partition_id() p, id from (" + shuffled + ")";
  }

  private static Map<String, String> settings(String route, boolean weft) {
    return Map.of(
        "spark.weft.route",
        route,
        // Spark itself shuffles the expected rows.
        "spark.weft.enabled",
        String.valueOf(weft),
        "spark.sql.adaptive.enabled",
        "false",
        // Samples all rows; otherwise the sample depends on the RDD's id.
        "spark.sql.execution.rangeExchange.sampleSizePerPartition",
        "100000",
        // Otherwise Weft and Spark order rows differently before they deal them: DealtRowsTest.
        "spark.sql.execution.sortBeforeRepartition",
        "false");
  }

  private static Dataset<Row> planned(Dataset<Row> rows) {
    Plans.of(rows);
    return rows;
  }
}
