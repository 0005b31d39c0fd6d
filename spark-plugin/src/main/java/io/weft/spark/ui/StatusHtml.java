package io.weft.spark.ui;

import static io.weft.spark.ui.Texts.bytes;
import static io.weft.spark.ui.Texts.escape;
import static io.weft.spark.ui.Texts.millis;
import static io.weft.spark.ui.Texts.number;

import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.spark.runtime.WeftMetrics;
import io.weft.spark.runtime.WeftMetrics.Metric;
import io.weft.spark.shuffle.ShuffleRoutes.RouteTaken;
import io.weft.spark.ui.Overview.CollectiveRow;
import io.weft.spark.ui.TabRequest.Column;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Renders the contents of the Weft tab. All texts are escaped. The page has no scripts: sorting and
 * paging are links, and figures on pictures are tooltips of SVG. For one request.
 */
final class StatusHtml {
  private static final int SHOWN_EVENTS = 100;

  private final TabContents contents;
  private final TabRequest request;
  private final String stages;
  private final StringBuilder html = new StringBuilder();

  private StatusHtml(TabContents contents, TabRequest request, String stages) {
    this.contents = contents;
    this.request = request;
    this.stages = stages;
  }

  /**
   * Renders the page.
   *
   * @param stages the path of Spark's page of a stage
   */
  static String of(TabContents contents, TabRequest request, String stages) {
    StatusHtml page = new StatusHtml(contents, request, stages);
    page.render(contents.overview().get());
    return page.html.toString();
  }

  private void render(Overview overview) {
    html.append("<div id=\"weft\"><p>Weft ").append(escape(overview.version())).append(". ");
    html.append(escape(overview.state())).append("</p>");
    html.append("<p><a href=\"json").append(escape(request.onPage(request.page())));
    html.append("\">This page as JSON</a></p>");
    shuffles(overview);
    traffic();
    executors();
    timeLine();
    overview.reasons().forEach(this::reasons);
    if (!overview.paths().isEmpty()) {
      paths(overview);
    }
    collectives(overview.collectives());
    settings();
    html.append("</div>");
  }

  private void shuffles(Overview overview) {
    ShuffleTable.ShufflePage page =
        contents
            .activity()
            .shuffles()
            .page(request.sort(), request.descending(), request.from(), request.pageSize());
    title("shuffles", "Shuffles (" + number(page.total()) + ")");
    if (page.total() == 0) {
      empty("One row for each shuffle with its route, bytes and waits, after its first stage.");
      return;
    }
    pages(page.total(), request.page(), request::onPage, "shuffles");
    List<String> head = new ArrayList<>();
    for (Column column : Column.values()) {
      head.add(sortLink(column));
      if (column == Column.ROUTE) {
        head.add("Why");
        head.add("Stages");
      }
    }
    table(head, page.rows().stream().map(this::shuffle));
    if (overview.shuffles() > page.total()) {
      long older = overview.shuffles() - page.total();
      empty(number(older) + " older shuffles are not in the table.");
    }
  }

  private String sortLink(Column column) {
    String mark = "";
    if (column == request.sort()) {
      mark = request.descending() ? " ▾" : " ▴";
    }
    return "<a href=\"%s#shuffles\">%s%s</a>"
        .formatted(escape(request.sortedBy(column)), escape(column.title()), mark);
  }

  private List<String> shuffle(ShuffleRow row) {
    boolean counted = !row.route().equals(RouteTaken.SORT);
    return List.of(
        Integer.toString(row.id()),
        escape(row.route()),
        escape(row.why()),
        stages(row.writers()) + " → " + stages(row.readers()),
        Integer.toString(row.attempts()),
        number(row.recomputed()),
        counted ? number(row.adopted()) : "–",
        number(row.rows()),
        row.batches() > 0 ? number(row.batches()) : "–",
        bytes(row.written()),
        counted ? bytes(row.own()) : "–",
        counted ? bytes(row.sameHost()) : "–",
        counted ? bytes(row.network()) : "–",
        counted ? bytes(row.gpu()) : "–",
        counted ? bytes(row.onDisk()) : "–",
        counted ? millis(row.waitMillis()) : "–",
        sizes(row));
  }

  private static String sizes(ShuffleRow row) {
    return row.hasSizes()
        ? "%s – %s – %s (%s)"
            .formatted(
                bytes(row.smallest()),
                bytes(row.median()),
                bytes(row.largest()),
                number(row.partitions()))
        : "–";
  }

  private String stages(List<Integer> ids) {
    return ids.stream()
        .map(id -> "<a href=\"%s?id=%d&amp;attempt=0\">%d</a>".formatted(escape(stages), id, id))
        .collect(Collectors.joining(", "));
  }

  private void traffic() {
    TrafficMatrix.Snapshot traffic = contents.activity().traffic().snapshot();
    title("traffic", "Bytes between " + (traffic.byHost() ? "hosts" : "executors"));
    if (traffic.names().isEmpty()) {
      empty(
          "A map of the bytes that each executor read from each other one, after the first"
              + " shuffle that Weft carries.");
    } else {
      html.append(HeatMap.svg(traffic));
    }
  }

  private void executors() {
    ExecutorTable.ExecutorPage page =
        contents.activity().executors().page(request.executorsFrom(), request.pageSize());
    title("executors", "Executors (" + number(page.total()) + ")");
    if (page.total() == 0) {
      empty("One row for each executor with its memory and bytes, a few seconds after its start.");
      return;
    }
    pages(page.total(), request.executorPage(), request::onExecutorPage, "executors");
    table(
        List.of(
            "Executor",
            "Host",
            "State",
            "Memory in use",
            "Memory reserved",
            "Memory budget",
            "On disk",
            "Waiting for readers",
            "Memory over time",
            "Written",
            "Read: own",
            "Read: same host",
            "Read: network",
            "Warning"),
        page.rows().stream().map(StatusHtml::executor));
  }

  private static List<String> executor(ExecutorRow row) {
    return List.of(
        escape(row.id()),
        escape(row.host()),
        row.running() ? "running" : "ended",
        figure(row, WeftMetrics.MEMORY_USED),
        figure(row, WeftMetrics.MEMORY_RESERVED),
        figure(row, WeftMetrics.MEMORY_BUDGET),
        figure(row, WeftMetrics.DISK_USED),
        figure(row, WeftMetrics.RETIRED_BYTES),
        MemoryChart.svg(row.memory()),
        figure(row, ExchangeCounter.BYTES_PUBLISHED),
        figure(row, ExchangeCounter.LOCAL_BYTES),
        figure(row, ExchangeCounter.SAME_HOST_BYTES),
        figure(row, ExchangeCounter.REMOTE_BYTES),
        escape(row.warning()));
  }

  private static String figure(ExecutorRow row, Metric metric) {
    return bytes(row.get(metric.name()));
  }

  private static String figure(ExecutorRow row, ExchangeCounter counter) {
    return bytes(row.get(WeftMetrics.name(counter)));
  }

  private void timeLine() {
    List<TimeLine.Event> events = contents.activity().timeLine().events();
    title("events", "Events (" + number(events.size()) + ")");
    if (events.isEmpty()) {
      empty(
          "Shuffles left to Spark with the reason, failures, executors that ended, outputs that"
              + " moved, full memory and warnings. None so far.");
      return;
    }
    html.append(TimeLineChart.svg(events));
    table(
        List.of("Last", "First", "Times", "Kind", "What"),
        events.stream()
            .sorted(Comparator.comparingLong(TimeLine.Event::last).reversed())
            .limit(SHOWN_EVENTS)
            .map(
                event ->
                    List.of(
                        Instant.ofEpochMilli(event.last()).toString(),
                        Instant.ofEpochMilli(event.first()).toString(),
                        number(event.count()),
                        escape(event.kind()),
                        escape(event.text()))));
  }

  private void reasons(String title, Map<String, Long> counts) {
    title("", title);
    if (counts.isEmpty()) {
      empty("The reasons, with their numbers. None so far.");
      return;
    }
    table(
        List.of("Reason", "Number"),
        counts.entrySet().stream()
            .map(entry -> List.of(escape(entry.getKey()), number(entry.getValue()))));
  }

  private void paths(Overview overview) {
    title("", overview.pathsTitle());
    table(
        List.of("What", "Path", "Reason", "Pairs", "For example executors"),
        overview.paths().stream()
            .map(
                path ->
                    Stream.of(
                            path.what(),
                            path.path(),
                            path.reason(),
                            Long.toString(path.pairs()),
                            path.example())
                        .map(Texts::escape)
                        .toList()));
  }

  private void collectives(List<CollectiveRow> rows) {
    title("", "Collectives and transfers");
    if (rows.isEmpty()) {
      empty("Calls, bytes and time by algorithm, once tasks use WeftCollectives or WeftTransfers.");
      return;
    }
    table(
        List.of("Algorithm", "Calls", "Bytes", "Time, added up over ranks"),
        rows.stream()
            .map(
                row ->
                    List.of(
                        escape(row.algorithm()),
                        number(row.calls()),
                        bytes(row.bytes()),
                        row.nanos() > 0
                            ? millis(TimeUnit.NANOSECONDS.toMillis(row.nanos()))
                            : "–")));
  }

  private void settings() {
    List<SettingRow> all = SettingRow.of(contents.conf());
    List<SettingRow> changed = all.stream().filter(SettingRow::changed).toList();
    title("settings", "Settings that differ from their defaults");
    if (changed.isEmpty()) {
      empty("All settings of Weft have their defaults.");
    } else {
      table(
          List.of("Key", "Value", "Default", "Meaning"),
          changed.stream()
              .map(
                  row ->
                      Stream.of(row.key(), row.value(), row.defaultValue(), row.meaning())
                          .map(Texts::escape)
                          .toList()));
    }
    html.append("<details><summary>All other settings</summary>");
    table(
        List.of("Key", "Value", "Meaning"),
        all.stream()
            .filter(row -> !row.changed())
            .map(
                row ->
                    Stream.of(row.key(), row.value(), row.meaning()).map(Texts::escape).toList()));
    html.append("</details>");
  }

  private void title(String anchor, String title) {
    html.append(anchor.isEmpty() ? "<h4>" : "<h4 id=\"" + anchor + "\">");
    html.append(escape(title)).append("</h4>");
  }

  private void empty(String what) {
    html.append("<p>").append(escape(what)).append("</p>");
  }

  /** Links to the first, previous, next and last page, if there is more than one. */
  private void pages(int total, int page, IntFunction<String> query, String anchor) {
    int last = Math.max(1, (total + request.pageSize() - 1) / request.pageSize());
    if (last == 1 && page == 1) {
      return;
    }
    html.append("<p>Page ").append(page).append(" of ").append(last).append(':');
    link(query.apply(1), anchor, "first");
    link(query.apply(Math.max(1, Math.min(page, last + 1) - 1)), anchor, "previous");
    link(query.apply(Math.min(last, page) == last ? last : page + 1), anchor, "next");
    link(query.apply(last), anchor, "last");
    html.append("</p>");
  }

  private void link(String query, String anchor, String text) {
    html.append(" <a href=\"").append(escape(query)).append('#').append(anchor).append("\">");
    html.append(text).append("</a>");
  }

  /** Appends a table whose cells are HTML already. */
  private void table(List<String> head, Stream<List<String>> rows) {
    html.append("<div style=\"overflow-x:auto\">");
    html.append("<table class=\"table table-bordered table-sm table-striped\"><thead>");
    row(head, "th");
    html.append("</thead><tbody>");
    rows.forEach(row -> row(row, "td"));
    html.append("</tbody></table></div>");
  }

  private void row(List<String> cells, String tag) {
    html.append("<tr>");
    for (String cell : cells) {
      html.append('<').append(tag).append('>').append(cell);
      html.append("</").append(tag).append('>');
    }
    html.append("</tr>");
  }
}
