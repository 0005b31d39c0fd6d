package io.weft.examples.plans;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.examples.tpcds.TpcdsQuery;
import io.weft.examples.tpcds.TpcdsTables;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Adaptive execution makes the same plans of TPC-DS with Weft as without it. */
@Tag("slow")
class TpcdsPlansTest {
  private static final double SCALE = 0.02;

  @TempDir static Path folder;

  private static SparkSession session;

  @BeforeAll
  static void start() throws Exception {
    session = FinalPlansTest.open("tpcds-plans");
    FinalPlansTest.register(session, TpcdsTables.ALL, SCALE, folder);
  }

  @AfterAll
  static void stop() {
    session.stop();
    SparkSession.clearActiveSession();
    SparkSession.clearDefaultSession();
  }

  static List<TpcdsQuery> queries() {
    return TpcdsQuery.all();
  }

  @ParameterizedTest
  @MethodSource("queries")
  void plansAreEqual(TpcdsQuery query) {
    assertThat(FinalPlan.difference(session, query.text(), new ArrayList<>())).isEmpty();
  }
}
