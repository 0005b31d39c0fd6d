package io.weft.spark.ui;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.spark.LocalSpark;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.deploy.history.FsHistoryProvider;
import org.apache.spark.deploy.history.HistoryServer;
import org.apache.spark.internal.config.package$;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.status.ElementTrackingStore;
import org.apache.spark.util.kvstore.InMemoryStore;
import org.apache.spark.util.kvstore.KVStore;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import scala.Option;

/** The Weft tab of applications in Spark's history server, over HTTP. */
class WeftHistoryTest {
  @TempDir private Path folder;
  private Path logs;

  @BeforeEach
  void makeFolder() throws IOException {
    logs = Files.createDirectory(folder.resolve("logs"));
  }

  /** What an application left. */
  private record Run(String id, long rows, long readInPlace) {}

  private LocalSpark start(Map<String, String> more) {
    Map<String, String> settings = new HashMap<>(more);
    settings.put("spark.eventLog.enabled", "true");
    settings.put("spark.eventLog.dir", logs.toUri().toString());
    settings.put("spark.weft.fetch.timeout", "77s");
    return LocalSpark.start(settings);
  }

  private Run run(Map<String, String> more) {
    try (LocalSpark spark = start(more)) {
      return job(spark);
    }
  }

  private static Run job(LocalSpark spark) {
    spark.session().range(10_000).toDF().repartition(7).toJavaRDD().count();
    spark.withSortShuffle(s -> s.range(10).toDF().repartition(3).toJavaRDD().count());
    return new Run(
        spark.session().sparkContext().applicationId(),
        10_000,
        LocalSpark.count(ExchangeCounter.LOCAL_BYTES));
  }

  /** A history server in this JVM. Close stops it. */
  private static final class Server implements AutoCloseable {
    private final HistoryServer server;

    Server(Path logs, Map<String, String> more) {
      SparkConf conf =
          new SparkConf(false)
              .set("spark.history.fs.logDirectory", logs.toUri().toString())
              .set("spark.history.fs.update.interval", "1s")
              .set("spark.driver.host", "localhost");
      more.forEach(conf::set);
      FsHistoryProvider provider = new FsHistoryProvider(conf);
      server =
          new HistoryServer(
              conf,
              provider,
              new SecurityManager(conf, Option.empty(), package$.MODULE$.AUTH_SECRET_FILE()),
              0);
      server.bind();
      provider.start();
    }

    /** Waits until the server has read the logs. */
    String page(String application, String path) {
      String url =
          "http://localhost:%d/history/%s%s".formatted(server.boundPort(), application, path);
      List<String> pages = new ArrayList<>();
      await()
          .atMost(Duration.ofSeconds(60))
          .ignoreExceptions()
          .until(() -> pages.add(WeftTabTest.get(url)));
      return pages.get(0);
    }

    @Override
    public void close() {
      server.stop();
    }
  }

  private static void check(Run run, String html, String json) throws IOException {
    assertThat(html)
        .contains("On: SQL shuffles go through Weft.", "its records are packed SQL rows")
        .contains("spark.weft.enabled is false in its session")
        .contains("<td>driver</td><td>localhost</td>")
        .contains("<td>spark.weft.fetch.timeout</td><td>77s</td><td>120s</td>")
        .contains("href=\"/history/" + run.id() + "/stages/stage/?id=");
    JsonNode shuffles = new ObjectMapper().readTree(json).at("/shuffles/rows");
    assertThat(shuffles.size()).isEqualTo(2);
    JsonNode ours = shuffles.get(1);
    assertThat(ours.get("route").textValue()).isEqualTo("rows");
    assertThat(ours.get("rows").longValue()).isEqualTo(run.rows());
    assertThat(ours.get("own").longValue()).isEqualTo(run.readInPlace());
  }

  @Test
  void anEndedApplicationHasTheSameTab() throws IOException {
    Run run = run(Map.of());
    try (Server server = new Server(logs, Map.of())) {
      check(run, server.page(run.id(), "/weft/"), server.page(run.id(), "/weft/json"));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"JSON", "PROTOBUF"})
  void theTabIsKeptInAStoreOnDisk(String serializer) throws IOException {
    Run run = run(Map.of());
    Map<String, String> store =
        Map.of(
            "spark.history.store.path",
            Files.createDirectory(folder.resolve("store")).toString(),
            "spark.history.store.serializer",
            serializer);
    for (int start = 0; start < 2; start++) {
      try (Server server = new Server(logs, store)) {
        check(run, server.page(run.id(), "/weft/"), server.page(run.id(), "/weft/json"));
      }
    }
  }

  @Test
  void rollingLogsHaveTheTab() throws IOException {
    Run run = run(Map.of("spark.eventLog.rolling.enabled", "true"));
    try (Server server = new Server(logs, Map.of())) {
      check(run, server.page(run.id(), "/weft/"), server.page(run.id(), "/weft/json"));
    }
  }

  /** Without Weft's jar, its events are of an unknown class. */
  @Test
  void aServerWithoutWeftReadsTheLog() throws IOException {
    Run run = run(Map.of("spark.eventLog.compress", "false"));
    String ours = "\"Event\":\"" + ActivityEvent.class.getName() + "\"";
    int changed = 0;
    for (Path log : files()) {
      String text = Files.readString(log);
      if (text.contains(ours)) {
        Files.writeString(log, text.replace(ours, "\"Event\":\"io.weft.NotHere\""));
        changed++;
      }
    }
    assertThat(changed).isPositive();
    try (Server server = new Server(logs, Map.of())) {
      assertThat(server.page(run.id(), "/jobs/"))
          .contains("Completed Jobs")
          .doesNotContain("/weft/");
      assertThat(server.page(run.id(), "/stages/")).contains("Completed Stages");
    }
  }

  /** An earlier version counted neither batches nor outputs recomputed and adopted. */
  @Test
  void aLogWithoutTheseFiguresHasTheTab() throws IOException {
    Run run = run(Map.of("spark.eventLog.compress", "false"));
    String figures = "\\\\*\"(recomputed|adopted|batches)\\\\*\":\\d+,";
    int removed = 0;
    for (Path log : files()) {
      String text = Files.readString(log);
      removed += (int) Pattern.compile(figures).matcher(text).results().count();
      Files.writeString(log, text.replaceAll(figures, ""));
    }
    assertThat(removed).isPositive().isEqualTo(removed / 3 * 3);
    try (Server server = new Server(logs, Map.of())) {
      String json = server.page(run.id(), "/weft/json");
      check(run, server.page(run.id(), "/weft/"), json);
      JsonNode ours = new ObjectMapper().readTree(json).at("/shuffles/rows/1");
      for (String figure : List.of("recomputed", "adopted", "batches")) {
        assertThat(ours.get(figure).longValue()).as(figure).isZero();
      }
    }
  }

  /** Spark records the settings of an application once; a log may have lost them. */
  @Test
  void whatIsMissingCostsOnlyTheTab() throws IOException {
    Run run = run(Map.of("spark.eventLog.compress", "false"));
    for (Path log : files()) {
      List<String> lines = Files.readAllLines(log);
      Files.write(
          log, lines.stream().filter(l -> !l.contains("SparkListenerEnvironmentUpdate")).toList());
    }
    try (Server server = new Server(logs, Map.of())) {
      assertThat(server.page(run.id(), "/stages/")).contains("Completed Stages");
    }
  }

  /** The driver may drop an ended executor before it logs its end. */
  @Test
  void executorsEndWithSparksEvent() throws Exception {
    MadeUpActivity made = new MadeUpActivity();
    made.report(1, 4, 0, 1);
    made.report(2, 4, 0, 1);
    KVStore kept = new InMemoryStore();
    ElementTrackingStore store = new ElementTrackingStore(kept, new SparkConf(false));
    SparkListener replay = new WeftHistory().createListeners(new SparkConf(false), store).head();
    ActivityEvent event = made.activity.takeChanges(made.overview(), true);
    replay.onOtherEvent(event);
    replay.onExecutorRemoved(new SparkListenerExecutorRemoved(1, "1", "killed"));
    replay.onOtherEvent(event);
    store.close(false);
    WeftHistory.Stored stored = kept.read(WeftHistory.Stored.class, WeftHistory.Stored.KEY);
    assertThat(StatusJson.read(stored.json).executors())
        .extracting(row -> row.id() + " " + row.running())
        .containsExactly("2 true", "1 false");
  }

  /** All files of the logs. */
  private List<Path> files() throws IOException {
    try (Stream<Path> files = Files.walk(logs)) {
      return files.filter(Files::isRegularFile).toList();
    }
  }

  @Test
  void aRunningApplicationHasTheTabSoFar() throws IOException {
    try (LocalSpark spark = start(Map.of("spark.eventLog.compress", "false"))) {
      await()
          .atMost(Duration.ofSeconds(60))
          .until(
              () -> {
                spark.session().range(10).toDF().repartition(2).toJavaRDD().count();
                return logged().contains(ActivityEvent.class.getName());
              });
      try (Server server = new Server(logs, Map.of())) {
        assertThat(server.page(spark.session().sparkContext().applicationId(), "/weft/"))
            .contains("its records are packed SQL rows");
      }
    }
  }

  private String logged() throws IOException {
    StringBuilder text = new StringBuilder();
    for (Path file : files()) {
      text.append(Files.readString(file));
    }
    return text.toString();
  }

  @Test
  void anApplicationThatLogsNothingForTheTabHasNone() throws IOException {
    Run run = run(Map.of("spark.weft.ui.enabled", "false"));
    try (Server server = new Server(logs, Map.of())) {
      assertThat(server.page(run.id(), "/jobs/"))
          .contains("Completed Jobs")
          .doesNotContain("/weft/");
    }
  }
}
