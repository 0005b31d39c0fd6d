package io.weft.spark.driver;

import static io.weft.shuffle.peer.ExchangeCounter.BYTES_PUBLISHED;
import static io.weft.shuffle.peer.ExchangeCounter.LOCAL_BYTES;
import static io.weft.shuffle.peer.ExchangeCounter.REMOTE_BYTES;
import static io.weft.shuffle.peer.ExchangeCounter.SAME_HOST_BYTES;

import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.spark.config.Activation;
import io.weft.spark.config.Setting;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.config.WeftVersion;
import io.weft.spark.runtime.Messages.ExecutorReport;
import io.weft.spark.runtime.WeftMetrics;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.commons.text.StringEscapeUtils;
import org.apache.spark.SparkConf;
import org.apache.spark.util.Utils;

/** Renders the contents of the Weft tab. All texts are escaped. */
final class StatusHtml {
  private StatusHtml() {}

  static String of(DriverState state) {
    return summary(state)
        + executors(state.reports())
        + paths(state)
        + remarks(state)
        + fallbacks(state)
        + hostFeeds(state)
        + hostExchanges(state)
        + settings(state.conf());
  }

  private static String summary(DriverState state) {
    Activation activation = state.activation();
    String text =
        activation
            .inertReason()
            .map(reason -> "Weft stays off: " + reason)
            .or(activation::otherRole)
            .or(() -> state.failureRefusal().map(reason -> "Off for new shuffles: " + reason + "."))
            .orElse("On: SQL shuffles go through Weft.");
    return "<p>Weft " + escape(WeftVersion.current()) + ". " + escape(text) + "</p>";
  }

  private static String executors(List<ExecutorReport> reports) {
    return table(
        "Executors",
        List.of(
            "Executor",
            "Host",
            "Memory in use",
            "Memory reserved",
            "Memory budget",
            "On disk",
            "Waiting for readers",
            "Written",
            "Read: own",
            "Read: same host",
            "Read: network"),
        reports.stream().map(StatusHtml::executor));
  }

  private static List<String> executor(ExecutorReport report) {
    return List.of(
        report.executorId(),
        report.host(),
        bytes(report.get(WeftMetrics.MEMORY_USED)),
        bytes(report.get(WeftMetrics.MEMORY_RESERVED)),
        bytes(report.get(WeftMetrics.MEMORY_BUDGET)),
        bytes(report.get(WeftMetrics.DISK_USED)),
        bytes(report.get(WeftMetrics.RETIRED_BYTES)),
        bytes(report, BYTES_PUBLISHED),
        bytes(report, LOCAL_BYTES),
        bytes(report, SAME_HOST_BYTES),
        bytes(report, REMOTE_BYTES));
  }

  private static String paths(DriverState state) {
    List<PathGroup> paths = state.paths();
    return paths.isEmpty()
        ? ""
        : table(
            pathsTitle(state.peers()),
            List.of("What", "Path", "Reason", "Pairs", "For example executors"),
            paths.stream().map(StatusHtml::path));
  }

  /** Returns the title of the table of paths. */
  static String pathsTitle(int executors) {
    String title = "Between executors";
    return executors > PathGroup.MAX_EXECUTORS
        ? "%s (%d of %d)".formatted(title, PathGroup.MAX_EXECUTORS, executors)
        : title;
  }

  private static List<String> path(PathGroup group) {
    return List.of(
        group.what(),
        group.choice().path().toString(),
        group.choice().reason(),
        Long.toString(group.pairs()),
        group.example());
  }

  private static String remarks(DriverState state) {
    return state.remarks().isEmpty()
        ? ""
        : table(
            "Executors with warnings",
            List.of("Executor", "Warning"),
            state.remarks().entrySet().stream()
                .map(entry -> List.of(entry.getKey(), entry.getValue())));
  }

  private static String fallbacks(DriverState state) {
    return table(
        "Shuffles left to Spark's sort shuffle",
        List.of("Reason", "Shuffles"),
        state.fallbacks().entrySet().stream()
            .map(entry -> List.of(entry.getKey(), entry.getValue().toString())));
  }

  private static String hostFeeds(DriverState state) {
    return reasons(
        "Feeds that go from host to host instead of GPU to GPU", "Feeds", state.hostFeeds());
  }

  private static String hostExchanges(DriverState state) {
    return reasons(
        "Exchanges of batches on GPUs that go between hosts", "Exchanges", state.hostExchanges());
  }

  private static String reasons(String title, String what, Map<String, Long> counts) {
    return counts.isEmpty()
        ? ""
        : table(
            title,
            List.of("Reason", what),
            counts.entrySet().stream()
                .map(entry -> List.of(entry.getKey(), entry.getValue().toString())));
  }

  private static String settings(SparkConf conf) {
    return table(
        "Settings",
        List.of("Key", "Value", "Meaning"),
        WeftSettings.all().stream().map(setting -> setting(setting, conf)));
  }

  private static <T> List<String> setting(Setting<T> setting, SparkConf conf) {
    return List.of(setting.key(), setting.format(setting.get(conf)), setting.doc());
  }

  private static String table(String title, List<String> head, Stream<List<String>> rows) {
    StringBuilder html = new StringBuilder();
    html.append("<h4>").append(escape(title)).append("</h4>");
    html.append("<table class=\"table table-bordered table-sm table-striped\"><thead>");
    row(html, head, "th");
    html.append("</thead><tbody>");
    rows.forEach(row -> row(html, row, "td"));
    return html.append("</tbody></table>").toString();
  }

  private static void row(StringBuilder html, List<String> cells, String tag) {
    html.append("<tr>");
    for (String cell : cells) {
      html.append('<').append(tag).append('>');
      html.append(escape(cell)).append("</").append(tag).append('>');
    }
    html.append("</tr>");
  }

  private static String bytes(ExecutorReport report, ExchangeCounter counter) {
    return bytes(report.get(WeftMetrics.name(counter)));
  }

  private static String bytes(long bytes) {
    return Utils.bytesToString(bytes);
  }

  private static String escape(String text) {
    return StringEscapeUtils.escapeHtml4(text);
  }
}
