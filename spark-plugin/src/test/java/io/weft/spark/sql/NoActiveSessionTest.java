package io.weft.spark.sql;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * A query becomes an RDD on a thread that has no active session. Spark then executes the plan there
 * without one, and nodes that are made during the execution would have none either.
 */
class NoActiveSessionTest {
  @RegisterExtension static final SqlSpark SPARK = new SqlSpark();

  @TempDir static Path folder;

  private static final ExecutorService OTHER =
      Executors.newSingleThreadExecutor(
          work -> {
            Thread thread = new Thread(work, "no-active-session");
            thread.setDaemon(true);
            return thread;
          });

  @BeforeAll
  static void tables() {
    SampleTables.create(SPARK.session(), folder);
  }

  @AfterAll
  static void stop() {
    OTHER.shutdownNow();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "auto | select id * 7 % 101 k, id v from range(1000) order by k",
        "auto | select id k, id * 2 v, string(id) s from range(1000) distribute by k",
        "auto | select /*+ repartition(3) */ id k, id * 2 v from range(1000)",
        "auto | select /*+ repartition_by_range(3, k) */ id k, id * 2 v from range(1000)",
        "auto | select k, count(*) c, sum(d) d from facts group by k",
        "auto | select a.id, b.s from facts a join facts b on a.id = b.id + 1",
        "columns | select id * 7 % 101 k, id v from range(1000) order by k",
        "columns | select id k, id * 2 v, string(id) s from range(1000) distribute by k",
        "columns | select /*+ repartition(3) */ id k, id * 2 v from range(1000)",
        "rows | select * from facts distribute by id",
      })
  void rowsAreTheSame(String route, String query) {
    Map<String, String> settings =
        Map.of(
            "spark.weft.route",
            route,
            "spark.sql.adaptive.enabled",
            "false",
            "spark.sql.autoBroadcastJoinThreshold",
            "-1");
    SPARK.with(
        settings,
        () -> {
          assertThat(rows(elsewhere(execution(query)::toRdd)))
              .isEqualTo(rows(execution(query).toRdd()));
          return null;
        });
  }

  /** Spark plans a conversion above the node, but its method for rows is public too. */
  @Test
  void aColumnarNodeConvertsItsBatches() {
    String query = "select id k, id * 2 v, string(id) s from range(1000) distribute by k";
    SPARK.with(
        Map.of("spark.weft.route", "columns", "spark.sql.adaptive.enabled", "false"),
        () -> {
          SparkPlan node = Plans.wefts(execution(query).executedPlan()).get(0);
          assertThat(rows(elsewhere(node::execute))).isEqualTo(rows(execution(query).toRdd()));
          return null;
        });
  }

  /** The packed rows as text, because Spark uses the memory of a row again for the next. */
  private static List<String> rows(RDD<InternalRow> result) {
    return result
        .toJavaRDD()
        .map(row -> HexFormat.of().formatHex(((UnsafeRow) row).getBytes()))
        .collect()
        .stream()
        .sorted()
        .toList();
  }

  private static RDD<InternalRow> elsewhere(Supplier<RDD<InternalRow>> execution) {
    try {
      return OTHER
          .submit(
              () -> {
                SparkSession.clearActiveSession();
                return execution.get();
              })
          .get(2, TimeUnit.MINUTES);
    } catch (ExecutionException | InterruptedException | TimeoutException e) {
      throw new AssertionError("on a thread without an active session", e);
    }
  }

  private static QueryExecution execution(String query) {
    Dataset<Row> rows = SPARK.session().sql(query);
    return ((org.apache.spark.sql.classic.Dataset<Row>) rows).queryExecution();
  }
}
