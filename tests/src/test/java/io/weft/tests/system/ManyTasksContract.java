package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.Query;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * One executor that runs many tasks at once, more than the machine has processors. All of them
 * share one arena, one catalog and one set of readers. A subclass sets the number of tasks.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class ManyTasksContract {
  private static final int ROWS = 300_000;

  @RegisterExtension
  @Order(1)
  final Workspace workspace = new Workspace();

  @RegisterExtension
  @Order(2)
  final WeftCluster cluster;

  private final int tasks;

  ManyTasksContract(int tasks) {
    this.tasks = tasks;
    cluster =
        new WeftCluster(workspace)
            .executors(1, 1536)
            .cores(tasks)
            .set("spark.weft.memory.segmentSize", "1m")
            .queries(Queries.all());
  }

  static Stream<Arguments> queries() {
    return Stream.of("rows", "columns")
        .flatMap(route -> Queries.all().stream().map(query -> Arguments.of(route, query)));
  }

  private SparkSession session(String route) {
    SparkSession session = cluster.session().newSession();
    Queries.configure(session, false);
    session.conf().set("spark.sql.shuffle.partitions", Integer.toString(2 * tasks));
    session.conf().set("spark.weft.route", route);
    return session;
  }

  @ParameterizedTest(name = "{1}: {0}")
  @MethodSource("queries")
  void answersAsSparkDoes(String route, Query query) {
    SparkSession session = cluster.session();
    Queries.configure(session, true);
    session.conf().set("spark.sql.shuffle.partitions", Integer.toString(2 * tasks));
    session.conf().set("spark.weft.route", route);
    cluster.check(query);
  }

  /** Map and reduce tasks of several jobs fill all slots, and one of the jobs fails. */
  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void jobsSideBySideAreRightWhileOneFails(String route) throws Exception {
    Row expected = sums(rows(session(route), "id"));
    List<CompletableFuture<Row>> jobs = new ArrayList<>();
    for (int job = 0; job < 4; job++) {
      Dataset<Row> moved = rows(session(route), "id").repartition(2 * tasks, col("id"));
      jobs.add(CompletableFuture.supplyAsync(() -> sums(moved.repartition(tasks, col("h")))));
    }
    Dataset<Row> failing =
        rows(session(route), "if(id = %d, raise_error('asked to'), id)".formatted(ROWS - 1));
    assertThatThrownBy(() -> sums(failing.repartition(2 * tasks, col("id"))))
        .hasStackTraceContaining("asked to");
    for (CompletableFuture<Row> job : jobs) {
      assertThat(job.get(4, TimeUnit.MINUTES)).isEqualTo(expected);
    }
    jobs.clear();
    cluster.awaitNothingUsed();
  }

  private Dataset<Row> rows(SparkSession session, String id) {
    return session.sql(
        "SELECT %s AS id, XXHASH64(id) AS h, STRING(id) AS s FROM RANGE(0, %d, 1, %d)"
            .formatted(id, ROWS, 4 * tasks));
  }

  private static Row sums(Dataset<Row> rows) {
    return rows.selectExpr("COUNT(*)", "SUM(id)", "BIT_XOR(h)", "BIT_XOR(XXHASH64(s))").head();
  }
}
