package io.weft.spark.runtime;

import io.weft.spark.runtime.WeftMetrics.Metric;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Writes {@code docs/metrics.md} from {@link WeftMetrics}. */
final class MetricsPage {
  private static final String HEAD =
      """
      # Metrics

      For: operators who watch a cluster.

      Every executor registers these with Spark's metrics system under `plugin.io.weft.spark.WeftPlugin.<name>`:
      `/metrics/json/`, `/metrics/prometheus/` and every sink of `metrics.properties` show them. The Weft tab
      of the Spark UI shows the most important ones. Counters start at 0 when the executor starts.
      The driver registers `executorsAnnounced`, `shufflesLeftToSpark` and `shuffleFailures`, the failed
      writes and fetches that count for `spark.weft.fallback.failures`.

      | name | kind | meaning |
      |---|---|---|
      """;

  private static final String TAIL =
      """

      Where in the code: generated from `WeftMetrics` in `io.weft.spark.runtime`; `MetricsPageTest` compares.
      """;

  /** A metric that exists for each algorithm of collectives: its family and the algorithm. */
  private static final Pattern OF_ALGORITHM =
      Pattern.compile("(collective(?:Calls|Bytes|Nanos))([A-Z]\\w*)");

  private MetricsPage() {}

  /** The whole page as Markdown. */
  public static String markdown() {
    return WeftMetrics.all().stream()
        .map(MetricsPage::row)
        .distinct()
        .collect(Collectors.joining("\n", HEAD, "\n\nAlgorithms: " + algorithms() + ".\n" + TAIL));
  }

  private static String row(Metric metric) {
    Matcher family = OF_ALGORITHM.matcher(metric.name());
    boolean each = family.matches();
    return "| `%s` | %s | %s |"
        .formatted(
            each ? family.group(1) + "<Algorithm>" : metric.name(),
            metric.kind().name().toLowerCase(Locale.ROOT),
            each ? "the same for one algorithm" : metric.doc());
  }

  private static String algorithms() {
    return WeftMetrics.all().stream()
        .map(metric -> OF_ALGORITHM.matcher(metric.name()))
        .filter(Matcher::matches)
        .map(family -> "`" + family.group(2) + "`")
        .distinct()
        .collect(Collectors.joining(", "));
  }
}
