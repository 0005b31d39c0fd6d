package io.weft.spark.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.spark.LocalSpark;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** The tab and the metrics over HTTP. */
class WeftTabTest {
  @Test
  void showsExecutorsFallbacksAndSettings() {
    try (LocalSpark spark = start(Map.of())) {
      spark.session().range(1000).toDF().repartition(3).toJavaRDD().count();
      spark.withSortShuffle(s -> s.range(10).toDF().repartition(3).toJavaRDD().count());
      awaitPage(
          spark,
          "/weft/",
          page ->
              assertThat(page)
                  .contains("On: SQL shuffles go through Weft.")
                  .containsPattern("<td>driver</td><td>localhost</td>(<td>[^<]*</td>){5}<td>[1-9]")
                  .contains("spark.weft.enabled is false in its session</td><td>1</td>")
                  .contains("<td>spark.weft.fetch.timeout</td><td>120s</td>"));
    }
  }

  @Test
  void saysThatNewShufflesAreLeftToSparkAfterFailures() {
    try (LocalSpark spark = start(Map.of("spark.weft.fallback.failures", "2"))) {
      DriverState.shuffleFailed("a test");
      assertThat(get(spark, "/weft/")).contains("On: SQL shuffles go through Weft.");
      DriverState.shuffleFailed("a test");
      spark.session().range(10).toDF().repartition(3).toJavaRDD().count();
      String reason = "Weft failed 2 times (spark.weft.fallback.failures)";
      assertThat(get(spark, "/weft/"))
          .contains("Off for new shuffles: " + reason + ".")
          .contains("<td>" + reason + "</td><td>1</td>");
      assertThat(get(spark, "/metrics/json/")).containsPattern("shuffleFailures\"[^}]*2");
    }
  }

  @Test
  void saysWhyWeftIsOff() {
    try (LocalSpark spark = start(Map.of("spark.shuffle.manager", "sort"))) {
      assertThat(get(spark, "/weft/"))
          .contains("Weft stays off: spark.shuffle.manager is set to 'sort'");
    }
  }

  @Test
  void escapesForeignTexts() {
    String name = "<script>alert(1)</script>";
    try (LocalSpark spark =
        start(
            Map.of(
                "spark.shuffle.useOldFetchProtocol",
                "true",
                "spark.weft.memory.folder",
                "/" + name))) {
      assertThat(get(spark, "/weft/")).contains("&lt;script&gt;").doesNotContain(name);
    }
  }

  @Test
  void showsExecutorsWithoutSharedMemory() {
    try (LocalSpark spark = start(Map.of("spark.weft.memory.folder", "/not/there"))) {
      awaitPage(
          spark,
          "/weft/",
          page ->
              assertThat(page)
                  .contains("Executors with warnings", "because /not/there does not exist"));
    }
  }

  @Test
  void canBeDisabled() {
    try (LocalSpark spark = start(Map.of("spark.weft.ui.enabled", "false"))) {
      assertThat(get(spark, "/jobs/")).doesNotContain("/weft/");
    }
  }

  @Test
  void metricsAreInSparksMetricsSystem() {
    try (LocalSpark spark = start(Map.of())) {
      assertThat(get(spark, "/metrics/json/"))
          .contains("plugin.io.weft.spark.WeftPlugin.bytesPublished")
          .contains("plugin.io.weft.spark.WeftPlugin.executorsAnnounced");
    }
  }

  private static LocalSpark start(Map<String, String> settings) {
    Map<String, String> all = new HashMap<>(settings);
    all.put("spark.ui.enabled", "true");
    all.put("spark.ui.port", "0");
    return LocalSpark.start(all);
  }

  /** Waits, because reports of executors and listeners arrive asynchronously. */
  private static void awaitPage(LocalSpark spark, String path, Consumer<String> check) {
    await().atMost(Duration.ofSeconds(60)).untilAsserted(() -> check.accept(get(spark, path)));
  }

  private static String get(LocalSpark spark, String path) {
    String url = spark.session().sparkContext().uiWebUrl().get() + path;
    try (InputStream in = URI.create(url).toURL().openStream()) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
