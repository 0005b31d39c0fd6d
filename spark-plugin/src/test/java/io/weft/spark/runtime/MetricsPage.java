package io.weft.spark.runtime;

import io.weft.spark.runtime.WeftMetrics.Metric;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Writes {@code docs/metrics.md} from {@link WeftMetrics}. */
final class MetricsPage {
  private static final String HEAD =
      """
      # Metrics

      For: operators who watch a cluster.

      Every executor registers these with Spark's metrics system under `plugin.io.weft.spark.WeftPlugin.<name>`,
      for all its sinks. The [Weft tab](monitoring.md) shows the most important ones. A metric is a counter from
      the executor's start unless it is a gauge. The driver registers `executorsAnnounced`,
      `shufflesLeftToSpark` and `shuffleFailures` (only those that count for `spark.weft.fallback.failures`).

      ```
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
        .collect(
            Collectors.joining("\n", HEAD, "\n```\n\nAlgorithms: " + algorithms() + ".\n" + TAIL));
  }

  private static String row(Metric metric) {
    Matcher family = OF_ALGORITHM.matcher(metric.name());
    if (family.matches()) {
      return line(family.group(1) + "<Algorithm>", "the same for one algorithm");
    }
    String gauge = metric.kind() == Metric.Kind.GAUGE ? "gauge: " : "";
    return line(metric.name(), gauge + metric.doc());
  }

  private static String line(String name, String meaning) {
    return "%-28s %s".formatted(name, meaning);
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
