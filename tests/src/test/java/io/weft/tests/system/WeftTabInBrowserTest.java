package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.tests.application.ExecutorProbe;
import io.weft.tests.application.FeedJob;
import io.weft.tests.application.RddJob;
import io.weft.tests.support.Browser;
import io.weft.tests.support.BrowserTab;
import io.weft.tests.support.BuildTree;
import io.weft.tests.support.EventLogServer;
import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.MapOutputs;
import io.weft.tests.support.ShownNumber;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.Utils;
import org.apache.spark.util.VersionUtils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The Weft tab in a real browser: one application of two executors with a shuffle of each route,
 * and at the end its page in Spark's history server. No test may cause an error in the browser's
 * console or a request to another host. Writes the pictures of the documents to the folder {@code
 * weft.screenshots}, if that is set.
 */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class WeftTabInBrowserTest {
  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final Browser BROWSER = new Browser(WORKSPACE);

  @RegisterExtension
  @Order(3)
  static final BeforeAllCallback LOG = context -> logEvents();

  @RegisterExtension
  @Order(4)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .queries(List.of())
          .set("spark.ui.enabled", "true")
          .set("spark.ui.port", "0")
          .set("spark.eventLog.enabled", "true")
          .set("spark.weft.rdd.streams", "true");

  private static final List<Integer> ROWS = List.of(9, 80, 1_000, 9_000, 150_000);
  private static final int MAPS = 2;
  private static final int PARTITIONS = 6;
  private static final String TITLES =
      "[...document.querySelectorAll('#weft th a')].map(a => a.text)";
  private static final int NARROW = 400;
  private static final double TEXT_CONTRAST = 4.5;

  /** Links have the colour of Spark's own, which has less. */
  private static final double LINK_CONTRAST = 3;

  private static final double SHAPE_CONTRAST = 3;
  private static final int PICTURE_WIDTH = 1500;
  private static final int MAX_PICTURE_BYTES = 150_000;

  private final BrowserTab tab = BROWSER.open();
  private final String server = CLUSTER.context().uiWebUrl().get();

  private static void logEvents() throws IOException {
    Path folder = Files.createDirectory(WORKSPACE.folder().resolve("events"));
    CLUSTER.set("spark.eventLog.dir", folder.toUri().toString());
  }

  @BeforeAll
  static void shuffleByEachRoute() throws IOException {
    SparkSession session = CLUSTER.session();
    ROWS.forEach(rows -> session.range(rows).toDF().repartition(4).toJavaRDD().count());
    session.conf().set("spark.weft.route", "columns");
    session.range(0, 20_000, 1, MAPS).toDF().repartition(PARTITIONS).toJavaRDD().count();
    session.conf().unset("spark.weft.route");
    RddJob.GROUP.run(CLUSTER.context(), 2_000);
    new FeedJob(WORKSPACE.folder().toString(), false).run(session);
    session.conf().set("spark.weft.enabled", "false");
    session.range(5_000).toDF().repartition(3).toJavaRDD().count();
    session.conf().unset("spark.weft.enabled");
    awaitReports();
  }

  /** Waits until the tab has what executors have read; they report it some seconds later. */
  private static void awaitReports() {
    Map<String, List<Long>> expected = new HashMap<>();
    ExecutorProbe.statistics(CLUSTER.context())
        .forEach((id, values) -> expected.put(id, read(values::get)));
    await()
        .atMost(Duration.ofMinutes(1))
        .untilAsserted(
            () -> {
              Map<String, List<Long>> shown = new HashMap<>();
              for (JsonNode row : json().at("/executors/rows")) {
                if (row.get("running").asBoolean()) {
                  JsonNode values = row.get("values");
                  shown.put(row.get("id").asText(), read(metric -> values.path(metric).asLong()));
                }
              }
              assertThat(shown).isEqualTo(expected);
            });
  }

  private static List<Long> read(Function<String, Long> metrics) {
    return Stream.of("localBytes", "sameHostBytes").map(metrics).toList();
  }

  @BeforeEach
  void load() {
    load("");
  }

  @AfterEach
  void checkErrorsAndRequests() {
    try (tab) {
      assertThat(tab.errors()).isEmpty();
      assertThat(tab.requests())
          .isNotEmpty()
          .allSatisfy(url -> assertThat(url.getHost()).isEqualTo("127.0.0.1"));
    }
  }

  private void load(String query) {
    tab.load(server + "/weft/" + query);
  }

  private static JsonNode json() throws IOException {
    String url = CLUSTER.context().uiWebUrl().get() + "/weft/json?pageSize=500";
    try (InputStream in = URI.create(url).toURL().openStream()) {
      return new ObjectMapper().readTree(in);
    }
  }

  private static long sum(JsonNode json, String name) {
    return json.at("/shuffles/rows").findValues(name).stream().mapToLong(JsonNode::longValue).sum();
  }

  private static String bytes(long bytes) {
    return Utils.bytesToString(bytes);
  }

  /** The rows of a table of the page: texts by title of the column. */
  private JsonNode table(String heading) {
    return tab.evaluate("weft.table('" + heading + "')");
  }

  private List<String> column(String heading, String title) {
    return tab.texts("weft.column('" + heading + "', '" + title + "')");
  }

  @Test
  void sparksOwnPagesLinkToTheTabAndItLinksToStages() {
    tab.load(server + "/jobs/");
    tab.follow("a", "Weft");
    assertThat(tab.address()).hasToString(server + "/weft/");
    String stage = column("shuffles", "Stages").get(0).split(" → ")[0];
    tab.follow("#weft td a", stage);
    assertThat(tab.evaluate("document.body.innerText").asText())
        .contains("Details for Stage " + stage);
  }

  @Test
  void theTableShowsEveryRouteWithItsFigures() throws IOException {
    assertThat(column("shuffles", "Route"))
        .contains("rows", "columns", "streams", "feed", "Spark's sort shuffle");
    JsonNode shown = table("shuffles");
    assertThat(sum(json(), "own")).isEqualTo(CLUSTER.sum("localBytes")).isPositive();
    assertThat(sum(json(), "sameHost")).isEqualTo(CLUSTER.sum("sameHostBytes")).isPositive();
    JsonNode rows = json().at("/shuffles/rows");
    assertThat(shown.size()).isEqualTo(rows.size()).isGreaterThan(ROWS.size() + 3);
    for (int i = 0; i < rows.size(); i++) {
      JsonNode row = rows.get(i);
      JsonNode cells = shown.get(i);
      boolean counted = !row.get("route").asText().startsWith("Spark");
      assertThat(cells.get("Shuffle").asText()).isEqualTo(row.get("id").asText());
      assertThat(cells.get("Route").asText()).isEqualTo(row.get("route").asText());
      assertThat(cells.get("Why").asText()).isEqualTo(row.get("why").asText()).isNotEmpty();
      assertThat(ShownNumber.of(cells.get("Rows").asText())).isEqualTo(row.get("rows").asDouble());
      assertThat(cells.get("Batches").asText())
          .isEqualTo(row.get("route").asText().equals("columns") ? MAPS * PARTITIONS + "" : "–");
      assertThat(cells.get("Written").asText()).isEqualTo(bytes(row.get("written").asLong()));
      assertThat(cells.get("Read in place: own").asText())
          .isEqualTo(counted ? bytes(row.get("own").asLong()) : "–");
      assertThat(cells.get("Read in place: same host").asText())
          .isEqualTo(counted ? bytes(row.get("sameHost").asLong()) : "–");
    }
    assertThat(column("shuffles", "Rows"))
        .contains("9", "80", "1,000", "9,000", "150,000", "20,000", "5,000");
  }

  @Test
  void executorsHaveTheFiguresOfTheirMetrics() {
    Map<String, Map<String, Long>> metrics = ExecutorProbe.statistics(CLUSTER.context());
    load("");
    JsonNode shown = table("executors");
    assertThat(shown.size()).isEqualTo(metrics.size());
    for (JsonNode row : shown) {
      Map<String, Long> values = metrics.get(row.get("Executor").asText());
      assertThat(row.get("State").asText()).isEqualTo("running");
      assertThat(row.get("Written").asText()).isEqualTo(bytes(values.get("bytesPublished")));
      assertThat(row.get("Read: own").asText()).isEqualTo(bytes(values.get("localBytes")));
      assertThat(row.get("Read: same host").asText()).isEqualTo(bytes(values.get("sameHostBytes")));
      assertThat(row.get("Memory budget").asText()).isEqualTo(bytes(values.get("memoryBudget")));
    }
  }

  @Test
  void aClickOnAColumnSortsByItsValue() {
    List<String> titles = tab.texts(TITLES);
    assertThat(titles).hasSizeGreaterThan(10);
    for (String title : titles) {
      String plain = title.replace(" ▾", "");
      tab.follow("#weft th a", title);
      String mark = checkOrder(plain);
      tab.follow("#weft th a", plain + mark);
      assertThat(checkOrder(plain)).isNotEqualTo(mark);
    }
    tab.follow("#weft th a", "Written");
    List<String> sizes = column("shuffles", "Written");
    assertThat(sizes)
        .as("sizes whose texts are in another order")
        .isNotEqualTo(sizes.stream().sorted().toList())
        .isNotEqualTo(sizes.stream().sorted(Collections.reverseOrder()).toList());
  }

  /**
   * Checks that the table is sorted by a column as the mark of its title says; returns the mark.
   */
  private String checkOrder(String title) {
    List<String> cells = column("shuffles", title);
    List<Object> values = new ArrayList<>(cells);
    if (!title.equals("Route")) {
      values.replaceAll(cell -> ShownNumber.of((String) cell));
    }
    boolean descending = tab.texts(TITLES).contains(title + " ▾");
    List<Object> sorted = values.stream().sorted().collect(Collectors.toList());
    if (descending) {
      Collections.reverse(sorted);
    }
    assertThat(values).as(title).isEqualTo(sorted);
    return descending ? " ▾" : " ▴";
  }

  @Test
  void pagesShowEachShuffleOnce() {
    List<String> all = column("shuffles", "Shuffle");
    load("?pageSize=4&sort=id&desc=true");
    List<String> seen = new ArrayList<>(column("shuffles", "Shuffle"));
    while (seen.size() < all.size()) {
      assertThat(seen.size() % 4).isZero();
      tab.follow("#weft a", "next");
      seen.addAll(column("shuffles", "Shuffle"));
    }
    assertThat(seen).isEqualTo(all);
    tab.follow("#weft a", "previous");
    tab.follow("#weft a", "first");
    assertThat(column("shuffles", "Shuffle")).isEqualTo(all.subList(0, 4));
    tab.follow("#weft a", "last");
    assertThat(column("shuffles", "Shuffle")).endsWith(all.get(all.size() - 1));
    assertThat(column("executors", "Executor")).as("pages of their own").hasSize(2);
  }

  @Test
  void theMouseOverTheMapShowsWhoReadHowMuch() {
    Map<String, Map<String, Long>> metrics = ExecutorProbe.statistics(CLUSTER.context());
    String cells = "svg[aria-label^=Bytes] g rect";
    Set<String> expected = new HashSet<>();
    for (String reader : List.of("0", "1")) {
      String other = reader.equals("0") ? "1" : "0";
      Map<String, Long> values = metrics.get(reader);
      expected.add("%s read %s from %s".formatted(reader, bytes(values.get("localBytes")), reader));
      expected.add(
          "%s read %s from %s".formatted(reader, bytes(values.get("sameHostBytes")), other));
    }
    Set<String> shown = new HashSet<>();
    for (int i = 0; i < expected.size(); i++) {
      shown.add(tab.hover(cells, i));
    }
    assertThat(shown).isEqualTo(expected);
    assertThat(tab.hover("#executors ~ div svg", 0)).contains("used (area)", "budget (dashed)");
    assertThat(tab.hover("svg[aria-label^=Events] rect", 0)).contains("Spark's sort shuffle");
  }

  @Test
  void thePageAsJsonIsTheSamePage() throws IOException {
    load("?sort=rows&pageSize=2&page=2");
    List<String> shown = column("shuffles", "Shuffle");
    tab.follow("a", "This page as JSON");
    JsonNode json = new ObjectMapper().readTree(tab.evaluate("document.body.innerText").asText());
    assertThat(json.at("/shuffles/rows").findValuesAsText("id")).isEqualTo(shown);
  }

  @ParameterizedTest
  @ValueSource(strings = {"light", "dark"})
  void textsAndPicturesAreReadable(String scheme) {
    tab.prefer(scheme);
    load("");
    tab.click("summary", "All other settings");
    assertThat(tab.evaluate("weft.isDark()").asBoolean())
        .isEqualTo(scheme.equals("dark") && sparkHasThemes());
    assertThat(tab.texts("weft.faintTexts(" + LINK_CONTRAST + ")")).isEmpty();
    assertThat(tab.texts("weft.faintTexts(" + TEXT_CONTRAST + ")"))
        .allMatch(text -> text.startsWith("A "));
    assertThat(tab.texts("weft.faintShapes(" + SHAPE_CONTRAST + ")")).isEmpty();
  }

  /** From 4.2 on; earlier pages are always light. */
  private static boolean sparkHasThemes() {
    return VersionUtils.majorVersion(CLUSTER.context().version()) > 4
        || VersionUtils.minorVersion(CLUSTER.context().version()) >= 2;
  }

  @ParameterizedTest
  @ValueSource(strings = {"light", "dark"})
  void aNarrowWindowHidesNothing(String scheme) {
    tab.resize(NARROW, 800);
    tab.prefer(scheme);
    load("");
    tab.click("summary", "All other settings");
    assertThat(tab.texts("weft.overflowing()")).isEmpty();
    assertThat(tab.texts("weft.hidden()")).isEmpty();
    assertThat(tab.evaluate("document.documentElement.scrollWidth").asInt())
        .isLessThanOrEqualTo(NARROW);
  }

  /** What the checks of other tests find, if it is there. */
  @Test
  void theChecksFindWhatTheyAreFor() {
    tab.resize(NARROW, 800);
    tab.evaluate(
        """
        document.getElementById("weft").innerHTML =
          `<p>good</p><p style="width: 900px">wide</p>
          <p style="overflow: hidden; width: 50px"><b style="margin-left: 90px">cut</b></p>
          <div style="overflow: auto; width: 50px"><b style="margin-left: 90px">scrolled</b></div>
          <p style="color: #bbb">faint</p><p style="color: #fff; background: #222">white</p>
          <svg><rect width="9" height="9" fill="#eee"/></svg>
          <svg><rect width="9" height="9" fill="#eee" stroke="#777"/></svg>`
        """);
    assertThat(tab.texts("weft.overflowing()")).containsExactly("P \"wide\"");
    assertThat(tab.texts("weft.hidden()")).containsExactly("P \"wide\"", "B \"cut\"");
    assertThat(tab.texts("weft.faintTexts(4.5)")).singleElement().asString().contains("faint");
    assertThat(tab.texts("weft.faintShapes(3)")).singleElement().asString().contains("#eee");
    try (BrowserTab other = BROWSER.open()) {
      other.load(server + "/jobs/");
      other.evaluate("console.error('made up'); fetch('http://192.0.2.1/'); 0");
      await()
          .untilAsserted(
              () -> assertThat(other.requests()).contains(URI.create("http://192.0.2.1/")));
      assertThat(other.errors()).anyMatch(error -> error.contains("made up"));
    }
  }

  /** Other tests have the first two executors. */
  @Test
  @Order(Integer.MAX_VALUE - 2)
  void outputsThatAreComputedAgainAreCounted() {
    JavaRDD<Row> rows = CLUSTER.session().range(0, 1000, 1, 4).toDF().repartition(3).toJavaRDD();
    assertThat(rows.count()).isEqualTo(1000);
    ExecutorProcess victim = CLUSTER.executors().get(0);
    long lost = MapOutputs.at(MapOutputs.lastShuffle(), victim);
    assertThat(lost).isPositive();
    victim.kill();
    CLUSTER.awaitExecutors();
    assertThat(rows.count()).isEqualTo(1000);
    awaitReports();
    load("");
    JsonNode shuffle = table("shuffles").get(0);
    assertThat(ShownNumber.of(shuffle.get("Attempts").asText())).isGreaterThan(1);
    assertThat(ShownNumber.of(shuffle.get("Outputs recomputed").asText())).isEqualTo(lost);
    assertThat(column("executors", "State")).containsExactly("running", "running", "ended");
    assertThat(column("events", "Kind")).contains("executor ended");
  }

  @Test
  @Order(Integer.MAX_VALUE - 1)
  void picturesForTheDocumentsAreSmall() throws IOException {
    tab.resize(PICTURE_WIDTH, 3000); // Spark's buttons for scrolling are below.
    load("?sort=written&pageSize=8");
    Path folder =
        BuildTree.root()
            .resolve(System.getProperty("weft.screenshots", WORKSPACE.folder().toString()));
    Path shuffles = folder.resolve("weft-tab-shuffles.png");
    Path executors = folder.resolve("weft-tab-executors.png");
    tab.picture(shuffles, "#shuffles", "#executors");
    tab.picture(executors, "#executors", "#events + div + div");
    assertThat(Files.size(shuffles)).isBetween(10_000L, (long) MAX_PICTURE_BYTES);
    assertThat(Files.size(executors)).isBetween(10_000L, (long) MAX_PICTURE_BYTES);
  }

  /** Ends the application. */
  @Test
  @Order(Integer.MAX_VALUE)
  void theHistoryServerShowsTheSamePage() {
    JsonNode shuffles = table("shuffles");
    List<String> settings = column("settings", "Key");
    String application = CLUSTER.context().applicationId();
    CLUSTER.stop();
    try (EventLogServer history = new EventLogServer(WORKSPACE.folder().resolve("events"))) {
      history.await(application);
      tab.load(history.address() + "/history/" + application + "/jobs/");
      tab.follow("a", "Weft");
      assertThat(table("shuffles")).isEqualTo(shuffles);
      assertThat(column("settings", "Key")).isEqualTo(settings);
      tab.follow("#weft th a", "Rows");
      checkOrder("Rows");
    }
  }
}
