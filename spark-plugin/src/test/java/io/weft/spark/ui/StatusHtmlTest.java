package io.weft.spark.ui;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.shuffle.peer.TrafficReport;
import io.weft.shuffle.peer.TrafficReport.Figure;
import io.weft.spark.runtime.Messages.ExecutorReport;
import io.weft.spark.runtime.Messages.Report;
import io.weft.spark.shuffle.ShuffleRoutes.RouteTaken;
import io.weft.spark.ui.Overview.CollectiveRow;
import io.weft.spark.ui.Overview.PathRow;
import io.weft.spark.ui.ShuffleTable.StageAttempt;
import io.weft.spark.ui.TabRequest.Column;
import java.io.StringReader;
import java.util.List;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import javax.xml.parsers.DocumentBuilderFactory;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.xml.sax.InputSource;

/** The contents of the Weft tab over a made-up state. */
class StatusHtmlTest {
  private static final String HOSTILE = "<script>alert(\"1\")</script>&'\"><img src=x>";

  private final MadeUpActivity made = new MadeUpActivity();

  @Test
  void emptyTablesSayWhatWouldBeInThem() {
    assertThat(made.html())
        .contains("Shuffles (0)", "One row for each shuffle")
        .contains("A map of the bytes that each executor read")
        .contains("Executors (0)", "One row for each executor")
        .contains("Events (0)", "None so far")
        .contains("Calls, bytes and time by algorithm")
        .contains("All settings of Weft have their defaults")
        .doesNotContain("<svg");
  }

  @Test
  void aShuffleHasItsFiguresAndLinksToItsStages() {
    made.shuffle(7);
    made.activity.shuffles().add(MadeUpActivity.figures(7, 2048));
    assertThat(made.html())
        .contains("<td>7</td><td>columns</td><td>its input is batches</td>")
        .contains("<a href=\"/stages/stage/?id=14&amp;attempt=0\">14</a> → ")
        .contains("?id=15&amp;attempt=0\">15</a>")
        .contains("<td>1,007</td>")
        .contains("<td>100.0 B – 207.0 B – 300.0 B (3)</td>")
        .contains(
            "<td>4.0 KiB</td><td>6.0 KiB</td><td>8.0 KiB</td><td>10.0 KiB</td><td>2.0 KiB</td>");
  }

  @Test
  void pathsOfShufflesThatSparkCarriesAreNotClaimed() {
    made.activity.shuffles().routed(1, new RouteTaken(RouteTaken.SORT, "it is off", 3));
    made.wrote(1, 4, 10, 2000);
    assertThat(made.html())
        .contains("it is off</td>")
        .contains("<td>2000.0 B</td><td>–</td><td>–</td><td>–</td><td>–</td><td>–</td><td>–</td>");
  }

  /** Outputs that were lost count once. The batches of an attempt are the total so far. */
  @Test
  void outputsThatWereLostAreCounted() {
    made.shuffle(7);
    ShuffleTable shuffles = made.activity.shuffles();
    shuffles.wrote(7, new StageAttempt(20, false, 3, 5, 112, 50));
    shuffles.wrote(7, new StageAttempt(20, true, 2, 10, 115, 100));
    shuffles.adopted(7, 4);
    shuffles.adopted(8, 4);
    assertThat(shuffles.rows())
        .extracting(ShuffleRow::attempts, ShuffleRow::recomputed, ShuffleRow::adopted)
        .containsExactly(tuple(3, 3L, 4L));
    assertThat(made.html())
        .contains("<td>3</td><td>3</td><td>4</td><td>1,022</td><td>115</td><td>976.7 KiB</td>");
  }

  @ParameterizedTest
  @EnumSource(Column.class)
  void shufflesAreSortedOnTheServer(Column column) {
    for (int i = 0; i < 200; i++) {
      made.shuffle(i);
      made.activity.shuffles().add(MadeUpActivity.figures(i, i * 1_000_000L));
    }
    made.wrote(199, 5000, 1, 1);
    made.activity.shuffles().adopted(199, 2);
    made.activity.shuffles().routed(199, new RouteTaken("z", "", 3));
    String down = made.html("sort", column.key(), "desc", "true", "pageSize", "3");
    String up = made.html("sort", column.key(), "desc", "false", "pageSize", "3");
    assertThat(shuffles(down)).containsExactly(199, 198, 197);
    assertThat(shuffles(up)).containsExactly(0, 1, 2);
    assertThat(down).contains(Texts.escape(column.title()) + " ▾</a>").contains("desc=false");
    assertThat(up).contains(Texts.escape(column.title()) + " ▴</a>");
  }

  /** The history server knows only these milliseconds, and must show the same order. */
  @Test
  void waitsOfTheSameMillisecondsAreEqual() {
    int wait = Figure.WAIT_NANOS.index() + 1;
    for (int i = 0; i < 3; i++) {
      made.shuffle(i);
      made.activity.shuffles().add(MadeUpActivity.figures(i, (1_900_000L - i * 100_000L) / wait));
    }
    String up = made.html("sort", Column.WAIT.key(), "desc", "false");
    String down = made.html("sort", Column.WAIT.key(), "desc", "true");
    assertThat(shuffles(up)).containsExactly(0, 1, 2);
    assertThat(shuffles(down)).containsExactly(2, 1, 0);
  }

  /** The numbers of the shuffles on a page, in their order. */
  private static List<Integer> shuffles(String html) {
    return Pattern.compile("<tr><td>(\\d+)</td><td>(?:columns|z)</td>")
        .matcher(html)
        .results()
        .map((MatchResult row) -> Integer.valueOf(row.group(1)))
        .toList();
  }

  @ParameterizedTest
  @CsvSource({"1, 99, 90", "2, 89, 80", "10, 9, 0"})
  void shufflesArePaged(String page, int first, int last) {
    for (int i = 0; i < 100; i++) {
      made.shuffle(i);
    }
    String html = made.html("page", page, "pageSize", "10");
    assertThat(shuffles(html)).hasSize(10).startsWith(first).endsWith(last);
    assertThat(html).contains("Page " + page + " of 10:");
  }

  @ParameterizedTest
  @CsvSource({
    "sort, <script>",
    "page, 0",
    "page, -9",
    "page, 99999999999",
    "page, 2147483647",
    "pageSize, 100000000",
    "pageSize, ''",
    "desc, <b>",
    "executorPage, x"
  })
  void wrongParametersDoNoHarm(String name, String value) {
    made.shuffle(1);
    assertThat(made.html(name, value)).contains("Shuffles (1)").doesNotContain("<script>", "<b>");
  }

  @Test
  void allTextsAreEscaped() throws Exception {
    made.activity.shuffles().routed(1, new RouteTaken(HOSTILE, HOSTILE, 1));
    made.activity.reported(
        new Report(
            new ExecutorReport(HOSTILE, HOSTILE, Map.of("memoryUsed", 1L)),
            new TrafficReport(List.of(), false, Map.of(HOSTILE, 5L)),
            false),
        false);
    made.activity.warned(HOSTILE, HOSTILE, HOSTILE);
    made.activity.failed(HOSTILE);
    made.activity.fellBack(HOSTILE);
    SparkConf conf = new SparkConf(false).set("spark.weft.memory.folder", "/" + HOSTILE);
    Overview overview =
        new Overview(
            HOSTILE,
            HOSTILE,
            1,
            Map.of(HOSTILE, Map.of(HOSTILE, 1L)),
            List.of(new PathRow(HOSTILE, HOSTILE, HOSTILE, 1, HOSTILE)),
            HOSTILE,
            List.of(new CollectiveRow(HOSTILE, 1, 1, 1)));
    String html =
        StatusHtml.of(
            new TabContents(() -> overview, made.activity, conf),
            MadeUpActivity.request("sort", HOSTILE),
            "/" + HOSTILE);
    assertThat(html).contains("&lt;script&gt;").doesNotContain("<script", "<img");
    // If all tags are closed, no text has opened or closed one.
    String xml =
        "<!DOCTYPE page [<!ENTITY ndash \"-\"><!ENTITY rarr \"-\"><!ENTITY hellip \"-\">"
            + "<!ENTITY ge \"-\">]><page>"
            + html.replace("&quot;", "'")
            + "</page>";
    DocumentBuilderFactory.newInstance()
        .newDocumentBuilder()
        .parse(new InputSource(new StringReader(xml)));
  }

  @Test
  void changedSettingsComeFirst() {
    SparkConf conf = new SparkConf(false).set("spark.weft.fetch.timeout", "7s");
    String html =
        StatusHtml.of(
            new TabContents(made::overview, made.activity, conf), MadeUpActivity.request(), "/");
    assertThat(html)
        .contains("<td>spark.weft.fetch.timeout</td><td>7s</td><td>120s</td>")
        .doesNotContain("<td>spark.weft.fetch.timeout</td><td>120s</td>");
    assertThat(html.indexOf("<td>7s</td>")).isLessThan(html.indexOf("<details>"));
    assertThat(html.indexOf("<td>spark.weft.enabled</td>"))
        .isGreaterThan(html.indexOf("<details>"));
  }

  /** A log may be of another version. */
  @Test
  void settingsThatAreNotAllowedAreShownAsTheyAre() {
    SparkConf conf = new SparkConf(false).set("spark.weft.fetch.timeout", "soon");
    assertThat(SettingRow.of(conf))
        .filteredOn(SettingRow::changed)
        .extracting(SettingRow::value)
        .containsExactly("soon");
  }

  /** The page of 10,000 shuffles is no larger than that of 1,000. */
  @Test
  void aPageIsBoundedAtTenThousandShufflesAndAThousandExecutors() {
    int executors = 1000;
    for (int i = 0; i < 1000; i++) {
      made.shuffle(i);
    }
    int small = made.html().length();
    for (int i = 0; i < 10_000; i++) {
      made.shuffle(i);
    }
    assertThat(made.html().length()).isLessThan(small + 20_000);
    for (int step = 0; step < ExecutorTable.MAX_SAMPLES; step++) {
      made.clock.addAndGet(10_000);
      for (int i = 0; i < executors; i++) {
        made.report(i, executors, 9000, step == 0 ? 200 : 1);
      }
    }
    for (int i = 0; i < 2 * TimeLine.MAX_EVENTS; i++) {
      made.activity.failed("failure " + i);
    }
    assertThat(made.html().length()).isLessThan(1_500_000);
    assertThat(made.html("executorPage", "20")).contains("<td>999</td>");
    assertThat(made.html("executorPage", "20").length()).isLessThan(1_500_000);
    assertThat(StatusJson.of(made.contents(), MadeUpActivity.request()).length())
        .isLessThan(1_500_000);
  }

  @Test
  void theJsonHasTheSamePage() throws Exception {
    for (int i = 0; i < 100; i++) {
      made.shuffle(i);
    }
    made.report(3, 5, 50, 2);
    made.activity.failed("a failure");
    JsonNode json =
        new ObjectMapper()
            .readTree(
                StatusJson.of(
                    made.contents(),
                    MadeUpActivity.request("sort", "rows", "page", "2", "pageSize", "30")));
    assertThat(json.at("/shuffles/total").intValue()).isEqualTo(100);
    assertThat(json.at("/shuffles/rows").size()).isEqualTo(30);
    assertThat(json.at("/shuffles/rows/0/id").intValue()).isEqualTo(69);
    assertThat(json.at("/shuffles/rows/0/rows").longValue()).isEqualTo(1069);
    assertThat(json.at("/executors/rows/0/host").textValue()).isEqualTo(MadeUpActivity.host(3));
    assertThat(json.at("/executors/rows/0/memory").size()).isEqualTo(1);
    assertThat(json.at("/traffic/names").size()).isEqualTo(5);
    assertThat(json.at("/events").findValuesAsText("text")).contains("a failure");
    assertThat(json.at("/settings/0/key").textValue()).startsWith("spark.weft.");
  }
}
