package io.weft.spark.ui;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.spark.LocalSpark;
import io.weft.spark.feed.WeftFeed;
import io.weft.spark.shuffle.WeftShuffleManager;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.util.Utils;
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
                  .containsPattern("<td>driver</td><td>localhost</td><td>running</td>")
                  .contains("spark.weft.enabled is false in its session</td><td>1</td>")
                  .contains("<td>spark.weft.fetch.timeout</td><td>120s</td>"));
    }
  }

  /** Spark's metrics, the exchange's counters and the page are three ways to the same numbers. */
  @Test
  void numbersOnThePageEqualTheMetrics() throws IOException {
    try (LocalSpark spark = start(Map.of())) {
      spark.session().range(5000).toDF().repartition(7).toJavaRDD().count();
      spark.session().range(3000).toDF().repartition(2).toJavaRDD().count();
      JsonNode json =
          awaitJson(
              spark,
              page ->
                  sum(page.at("/shuffles/rows"), "own")
                          == LocalSpark.count(ExchangeCounter.LOCAL_BYTES)
                      && sum(page.at("/shuffles/rows"), "attempts") == 2);
      JsonNode shuffles = json.at("/shuffles/rows");
      assertThat(shuffles.findValues("rows"))
          .extracting(JsonNode::longValue)
          .containsExactly(3000L, 5000L);
      assertThat(shuffles.findValues("partitions"))
          .extracting(JsonNode::intValue)
          .containsExactly(2, 7);
      assertThat(shuffles.findValues("readers")).allSatisfy(r -> assertThat(r.size()).isOne());
      assertThat(sum(shuffles, "own")).isEqualTo(LocalSpark.count(ExchangeCounter.LOCAL_BYTES));
      assertThat(sum(shuffles, "written")).isEqualTo(sum(sparksStages(spark), "shuffleWriteBytes"));
      assertThat(json.at("/traffic/bytes/0/0").longValue())
          .isEqualTo(LocalSpark.count(ExchangeCounter.LOCAL_BYTES));
      assertThat(get(spark, "/weft/?sort=rows&desc=true"))
          .containsSubsequence("<td>5,000</td>", "<td>3,000</td>")
          .contains("driver read " + Utils.bytesToString(sum(shuffles, "own")) + " from driver");
      assertThat(get(spark, "/weft/?sort=rows&desc=false"))
          .containsSubsequence("<td>3,000</td>", "<td>5,000</td>");
      String stage = shuffles.at("/0/writers/0").asText();
      assertThat(get(spark, "/stages/stage/?id=" + stage + "&attempt=0"))
          .contains("Details for Stage " + stage);
    }
  }

  /** Spark registers a shuffle while the constructor of its dependency still runs. */
  @Test
  void dependenciesNameTheirRoutes() {
    try (LocalSpark spark = start(Map.of("spark.weft.route", "columns"))) {
      Dataset<Row> numbers = spark.session().range(100).toDF();
      numbers.repartition(3, numbers.col("id")).toJavaRDD().count();
      WeftFeed.shards(numbers, 2).batchRows(10).export().close();
      JsonNode json =
          awaitJson(
              spark,
              page ->
                  page.at("/shuffles/rows")
                      .findValuesAsText("route")
                      .containsAll(List.of("columns", "feed")));
      assertThat(json.at("/shuffles/rows").findValuesAsText("why"))
          .contains("its rows go to the ranks of a feed")
          .allSatisfy(why -> assertThat(why).isNotEmpty().isNotEqualTo("null"));
    }
  }

  private static JsonNode sparksStages(LocalSpark spark) throws IOException {
    String application = spark.session().sparkContext().applicationId();
    return new ObjectMapper()
        .readTree(get(spark, "/api/v1/applications/" + application + "/stages"));
  }

  private static long sum(JsonNode rows, String name) {
    return rows.findValues(name).stream().mapToLong(JsonNode::longValue).sum();
  }

  private static JsonNode awaitJson(LocalSpark spark, Predicate<JsonNode> complete) {
    return await()
        .atMost(Duration.ofSeconds(60))
        .until(() -> new ObjectMapper().readTree(get(spark, "/weft/json")), complete);
  }

  @Test
  void saysThatNewShufflesAreLeftToSparkAfterFailures() {
    try (LocalSpark spark = start(Map.of("spark.weft.fallback.failures", "2"))) {
      fail();
      assertThat(get(spark, "/weft/")).contains("On: SQL shuffles go through Weft.");
      fail();
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
          spark, "/weft/", page -> assertThat(page).contains("because /not/there does not exist"));
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

  private static void fail() {
    ((WeftShuffleManager) SparkEnv.get().shuffleManager()).failures().count("a test");
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
    return get(spark.session().sparkContext().uiWebUrl().get() + path);
  }

  /** Reads a page. */
  static String get(String url) {
    try (InputStream in = URI.create(url).toURL().openStream()) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
