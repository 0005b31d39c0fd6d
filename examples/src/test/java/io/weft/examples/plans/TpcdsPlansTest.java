package io.weft.examples.plans;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.examples.tpcds.TpcdsQuery;
import io.weft.examples.tpcds.TpcdsTables;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Adaptive execution makes the same plans of TPC-DS with Weft as without it. */
@Tag("slow")
class TpcdsPlansTest {
  private static final double SCALE = 0.01;

  @TempDir static Path folder;

  private static SparkSession session;

  /** Some tables have millions of rows at every scale. */
  @BeforeAll
  @Timeout(value = 20, unit = TimeUnit.MINUTES)
  static void start() throws Exception {
    session = FinalPlansTest.open("tpcds-plans");
    // With few rows a query divides by zero.
    session.conf().set("spark.sql.ansi.enabled", "false");
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
