package io.weft.spark.sql;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.SparkPlan;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicContainer;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** Every sample query has the same result with Weft as with Spark's own shuffle. */
class QueryResultsTest {
  @RegisterExtension static final SqlSpark SPARK = new SqlSpark();

  @TempDir static Path folder;

  private final Map<String, List<String>> expected = new HashMap<>();

  @BeforeAll
  static void tables() {
    SPARK.with(
        Map.of("spark.weft.enabled", "false"),
        () -> {
          SampleTables.create(SPARK.session(), folder);
          return null;
        });
  }

  @TestFactory
  Stream<DynamicContainer> everyQuery() {
    return SampleQueries.all().entrySet().stream()
        .map(query -> DynamicContainer.dynamicContainer(query.getKey(), routes(query)));
  }

  private Stream<DynamicTest> routes(Map.Entry<String, String> query) {
    return Stream.of("columns true", "columns false", "auto true", "rows true")
        .map(mode -> mode.split(" "))
        .map(
            mode ->
                DynamicTest.dynamicTest(
                    mode[0] + ", adaptive " + mode[1], () -> compare(query, mode[0], mode[1])));
  }

  private void compare(Map.Entry<String, String> query, String route, String adaptive) {
    List<String> sparks =
        expected.computeIfAbsent(
            query.getKey(),
            name ->
                SPARK.with(
                    Map.of("spark.weft.enabled", "false"), () -> answer(query, rows(query))));
    SPARK.with(
        Map.of("spark.weft.route", route, "spark.sql.adaptive.enabled", adaptive),
        () -> {
          Dataset<Row> rows = rows(query);
          assertThat(answer(query, rows)).as(query.getValue()).isEqualTo(sparks);
          checkRoute(Plans.first(rows), route);
          return null;
        });
  }

  private static Dataset<Row> rows(Map.Entry<String, String> query) {
    return SPARK.session().sql(query.getValue());
  }

  private static List<String> answer(Map.Entry<String, String> query, Dataset<Row> rows) {
    return query.getValue().contains("order by") && !query.getValue().contains("over (")
        ? RowTexts.ordered(rows)
        : RowTexts.unordered(rows);
  }

  /** Checks that the query took the route; otherwise the comparison would prove nothing. */
  private static void checkRoute(SparkPlan plan, String route) {
    switch (route) {
      case "columns" -> assertThat(Plans.sparks(plan)).isEmpty();
      case "rows" -> assertThat(Plans.wefts(plan)).isEmpty();
      default -> assertThat(Plans.wefts(plan)).allMatch(node -> node.child().supportsColumnar());
    }
  }
}
