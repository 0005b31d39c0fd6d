package io.weft.spark.shuffle;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.LocalSpark;
import io.weft.spark.runtime.WeftExecutor;
import java.time.Duration;
import java.util.Map;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** After some failures that are not the end of an executor, Spark carries new shuffles. */
class FallbackAfterFailuresTest {
  private static final long ROWS = 1000;
  private static final String REASON = "Weft failed 3 times (spark.weft.fallback.failures)";

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void newShufflesGoBySparkAfterThreeFailures(String route) {
    try (LocalSpark spark =
        start(Map.of("spark.weft.route", route, "spark.weft.fallback.failures", "3"))) {
      Dataset<Row> before = rows(spark);
      assertThat(before.queryExecution().toRdd().count()).isEqualTo(ROWS);
      for (int i = 1; i <= 3; i++) {
        assertThat(failures().refusal()).isEmpty();
        failOnce(spark, i);
      }
      assertThat(failures().refusal()).contains(REASON);
      long published = LocalSpark.count(ExchangeCounter.OUTPUTS_PUBLISHED);
      assertThat(rows(spark).queryExecution().toRdd().count()).isEqualTo(ROWS);
      assertThat(LocalSpark.count(ExchangeCounter.OUTPUTS_PUBLISHED)).isEqualTo(published);
      assertThat(manager().fallbacks().counts()).containsEntry(REASON, 1L);
      assertThat(before.queryExecution().toRdd().count())
          .as("rows of a shuffle from before")
          .isEqualTo(ROWS);
    }
  }

  @Test
  void zeroMeansNever() {
    try (LocalSpark spark = start(Map.of("spark.weft.fallback.failures", "0"))) {
      for (int i = 1; i <= 4; i++) {
        failOnce(spark, i);
      }
      assertThat(failures().refusal()).isEmpty();
    }
  }

  /** Loses a map output between two jobs; the second one computes it again. */
  private static void failOnce(LocalSpark spark, int expected) {
    Dataset<Row> rows = rows(spark);
    assertThat(rows.queryExecution().toRdd().count()).isEqualTo(ROWS);
    int newest =
        WeftExecutor.exchange().outputs().stream()
            .mapToInt(BlockKey::shuffleId)
            .max()
            .orElseThrow();
    BlockKey lost =
        WeftExecutor.exchange().outputs().stream()
            .filter(key -> key.shuffleId() == newest)
            .findFirst()
            .orElseThrow();
    WeftExecutor.exchange().removeMapOutput(lost);
    assertThat(rows.queryExecution().toRdd().count()).isEqualTo(ROWS);
    await()
        .atMost(Duration.ofMinutes(1))
        .untilAsserted(() -> assertThat(failures().count()).isEqualTo(expected));
  }

  private static LocalSpark start(Map<String, String> settings) {
    Map<String, String> all = new java.util.HashMap<>(settings);
    all.put("spark.sql.adaptive.enabled", "false");
    return LocalSpark.start(all);
  }

  private static Dataset<Row> rows(LocalSpark spark) {
    return spark.session().range(0, ROWS, 1, 4).toDF().repartition(6, col("id"));
  }

  private static ShuffleFailures failures() {
    return manager().failures();
  }

  private static WeftShuffleManager manager() {
    return (WeftShuffleManager) SparkEnv.get().shuffleManager();
  }
}
