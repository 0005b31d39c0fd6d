package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.tests.support.Answers;
import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.Rows;
import io.weft.tests.support.Sessions;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.Query;
import io.weft.tests.workload.Tables;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Compares Spark with Spark: the answers do not depend on the cluster, and a wrong one would be
 * detected.
 */
class SelfCheckTest {
  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  private static SparkSession session;

  @BeforeAll
  static void start() {
    Answers.prepare(Queries.compact());
    session = Sessions.start(WORKSPACE, "local-cluster[2,1,1024]", Map.of());
    ExecutorProcess.await(ProcessHandle.current(), 2);
    Tables.register(session, Answers.tables());
  }

  @AfterAll
  static void stop() {
    session.stop();
  }

  static Stream<Query> queries() {
    return Queries.compact().stream();
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("queries")
  void answersAreThoseOfOneJvm(Query query) {
    Queries.configure(session, false);
    Rows.assertSame(query.name(), Answers.of(query), query.run(session));
  }

  @Test
  void aWrongAnswerIsNoticed() {
    Query right = Queries.compact().get(0);
    Query wrong =
        Query.of(right.name(), right.sql() + " WHERE id <> 7 UNION ALL SELECT " + nulls());
    List<String> rows = wrong.run(session);
    assertThatThrownBy(() -> Rows.assertSame(right.name(), Answers.of(right), rows))
        .hasMessageContaining("missing (1 times)")
        .hasMessageContaining("not expected (1 times)");
  }

  private static String nulls() {
    int columns = session.table("facts").columns().length;
    return "NULL, NULL" + ", NULL".repeat(columns - 1);
  }
}
