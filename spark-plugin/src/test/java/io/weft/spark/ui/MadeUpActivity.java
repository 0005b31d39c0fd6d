package io.weft.spark.ui;

import io.weft.shuffle.peer.TrafficReport;
import io.weft.shuffle.peer.TrafficReport.Figure;
import io.weft.shuffle.peer.TrafficReport.ShuffleTraffic;
import io.weft.spark.runtime.Messages.ExecutorReport;
import io.weft.spark.runtime.Messages.Report;
import io.weft.spark.runtime.WeftMetrics;
import io.weft.spark.shuffle.ShuffleRoutes.RouteTaken;
import io.weft.spark.ui.ShuffleTable.StageAttempt;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;

/** An application that never ran, of any size. */
final class MadeUpActivity {
  private static final int EXECUTORS_OF_A_HOST = 4;

  private static final List<String> HOSTS =
      IntStream.range(0, 250).mapToObj("worker-%04d.cluster.example"::formatted).toList();

  private static final List<String> METRICS =
      WeftMetrics.all().stream().limit(40).map(WeftMetrics.Metric::name).toList();

  final AtomicLong clock = new AtomicLong(1_700_000_000_000L);
  final Activity activity = new Activity(id -> host(Integer.parseInt(id)), clock::get);

  static String host(int executor) {
    return HOSTS.get(executor / EXECUTORS_OF_A_HOST);
  }

  Overview overview() {
    return new Overview(
        "1.0",
        "On.",
        activity.shuffles().total(),
        Map.of("Shuffles left to Spark's sort shuffle", Map.of()),
        List.of(),
        "",
        activity.executors().collectives());
  }

  TabContents contents() {
    return new TabContents(this::overview, activity, new SparkConf(false));
  }

  String html(String... parameters) {
    return StatusHtml.of(contents(), request(parameters), "/stages/stage/");
  }

  /** A request with parameters, as name, value, name, value. */
  static TabRequest request(String... parameters) {
    Map<String, String> all = new HashMap<>();
    for (int i = 0; i < parameters.length; i += 2) {
      all.put(parameters[i], parameters[i + 1]);
    }
    return TabRequest.of(all::get);
  }

  /** A completed shuffle whose figures follow from its number. */
  void shuffle(int id) {
    activity.shuffles().routed(id, new RouteTaken("columns", "its input is batches", 3));
    wrote(id, 2 * id, 1000L + id, 1_000_000L + id);
    activity.shuffles().read(id, 2 * id + 1);
    activity.shuffles().sized(id, new long[] {300, 100, 200L + id});
  }

  /** A stage of three map tasks, which wrote batches of 10 rows. */
  void wrote(int shuffle, int stage, long rows, long bytes) {
    activity.shuffles().wrote(shuffle, new StageAttempt(stage, true, 3, rows, rows / 10, bytes));
  }

  /** A report of an executor that read the last shuffles from all executors. */
  void report(int executor, int executors, int firstShuffle, int shuffles) {
    Map<String, Long> values = new HashMap<>();
    METRICS.forEach(metric -> values.put(metric, clock.get() % 10_000_000_000L + executor));
    List<ShuffleTraffic> traffic = new ArrayList<>();
    for (int i = 0; i < shuffles; i++) {
      traffic.add(figures(firstShuffle + i, 1_000L * executor));
    }
    Map<String, Long> sources = new HashMap<>();
    boolean byHost = executors > 64;
    for (int i = 0; i < executors; i += byHost ? EXECUTORS_OF_A_HOST : 1) {
      sources.put(byHost ? host(i) : Integer.toString(i), 1_000_000L * (i + executor + 1));
    }
    activity.reported(
        new Report(
            new ExecutorReport(Integer.toString(executor), host(executor), values),
            new TrafficReport(traffic, byHost, sources),
            false),
        false);
  }

  static ShuffleTraffic figures(int shuffle, long amount) {
    List<Long> figures = new ArrayList<>();
    for (Figure figure : Figure.values()) {
      figures.add(amount * (figure.index() + 1));
    }
    return new ShuffleTraffic(shuffle, figures);
  }
}
