package io.weft.spark.runtime;

import io.weft.spark.runtime.WeftMetrics.Metric;
import java.util.Locale;
import java.util.stream.Collectors;

/** Writes {@code docs/metrics.md} from {@link WeftMetrics}. */
final class MetricsPage {
  private static final String HEAD =
      """
      # Metrics

      Generated from `WeftMetrics`; a test compares this page with the code.

      Every executor registers these with Spark's metrics system under `plugin.io.weft.spark.WeftPlugin.<name>`:
      `/metrics/json/`, `/metrics/prometheus/` and every sink of `metrics.properties` show them. The Weft tab
      of the Spark UI shows the most important ones. Counters start at 0 when the executor starts.

      | name | kind | meaning |
      |---|---|---|
      """;

  private MetricsPage() {}

  /** The whole page as Markdown. */
  public static String markdown() {
    return WeftMetrics.all().stream()
        .map(MetricsPage::row)
        .collect(Collectors.joining("\n", HEAD, "\n"));
  }

  private static String row(Metric metric) {
    return "| `%s` | %s | %s |"
        .formatted(metric.name(), metric.kind().name().toLowerCase(Locale.ROOT), metric.doc());
  }
}
