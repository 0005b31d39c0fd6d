package io.weft.examples.bench.shuffle;

import io.weft.examples.measure.MeasureOptions;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.tables.TableSet;
import io.weft.examples.terminal.Progress;
import io.weft.examples.tpcds.TpcdsTables;
import io.weft.examples.tpch.TpchTables;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Parses {@code weft bench shuffle}. */
@Command(
    name = "shuffle",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    description = {
      "Measures what a shuffle costs under Spark's sort shuffle and under Weft, for several kinds"
          + " of data, on clusters of two executors that take turns.",
      "Needs about 15 GB of memory. With --quick it ends within three minutes. Writes a table,"
          + " JSON, Markdown and a chart."
    })
public final class ShuffleBenchCommand implements Callable<Integer> {
  private static final long FULL_ROWS = Workload.NUMERIC.rows(1);

  /** In seconds: less than the time that a side has for any task. */
  private static final long LONGEST_TIMEOUT = 800;

  private static final double QUICK_FACTOR = 0.1;
  private static final Duration QUICK_BUDGET = Duration.ofSeconds(100);
  private static final String WORKLOADS = "numeric,strings,tensors,computed,small-blocks,tpch";
  private static final String QUICK_WORKLOADS = "numeric,tensors,tpch";
  private static final List<String> QUICK_QUERIES = List.of("18");

  @Mixin private MeasureOptions measure;

  @Option(
      names = "--workloads",
      split = ",",
      paramLabel = "NAME",
      description = {
        "What to measure: tpcds or these. Default: "
            + WORKLOADS
            + "; with --quick: "
            + QUICK_WORKLOADS
            + ".",
        "Groups: "
            + Workload.SHAPES
            + " (other data and partitionings) and "
            + Workload.OPERATORS
            + " (GROUP BY, joins and other whole jobs)"
      })
  private List<String> workloads;

  @Option(
      names = "--queries",
      split = ",",
      paramLabel = "N",
      description =
          "Queries of TPC-H by number, or of TPC-DS by name, such as 14a. Default: 14 of TPC-H, or"
              + " 18 with --quick; all of TPC-DS")
  private List<String> names;

  @Option(
      names = "--transports",
      split = ",",
      defaultValue = "shm,tcp",
      paramLabel = "MODE",
      description = "How Weft moves data. Default: ${DEFAULT-VALUE}")
  private List<String> transports;

  @Option(
      names = "--conf",
      paramLabel = "KEY=VALUE",
      description =
          "A setting of Spark or Weft for all sides, for example"
              + " spark.serializer=org.apache.spark.serializer.KryoSerializer; repeatable")
  private Map<String, String> settings = Map.of();

  @Option(
      names = "--rows",
      paramLabel = "N",
      description =
          "Rows of the numeric workload; the others change in proportion. Default: 10000000, or a"
              + " tenth with --quick")
  private Long rows;

  @Option(
      names = "--scale",
      paramLabel = "FACTOR",
      description = "Scale factor of the queries' tables. Default: 1, or 0.1 with --quick")
  private Double scale;

  @Mixin private TableSet.FolderOption data;

  @Option(
      names = "--timeout",
      defaultValue = "300",
      paramLabel = "SECONDS",
      description =
          "Time for one run of a query. A query that fails is reported, and the others go on."
              + " Default: ${DEFAULT-VALUE}")
  private long timeout;

  @Option(
      names = "--warm-ups",
      defaultValue = "1",
      paramLabel = "N",
      description =
          "Runs before those that count, on each side. The JIT compiler is busy for about ten."
              + " Default: ${DEFAULT-VALUE}")
  private int warmUps;

  @Mixin private WorkFolder.KeepOption keep;

  @Option(
      names = "--profile",
      paramLabel = "SIDE",
      description =
          "Instead of measuring, run the first workload on one side (sort, shm or tcp) repeatedly,"
              + " with Java's flight recorder on in the executors")
  private String profile;

  @Option(
      names = "--compare",
      description = "Instead of measuring, only compare the results of the sides")
  private boolean compare;

  @Override
  public Integer call() throws Exception {
    ShuffleBench.Options options = options();
    if (profile != null) {
      ProfileRun.requireSide(profile);
      new ProfileRun(options, profile, measure.createFolder(), Progress.toErrors()).run();
      return 0;
    }
    if (compare) {
      return new ShuffleBench(options, Progress.toErrors()).compare() ? 0 : 1;
    }
    return measure.report(
        ShuffleReport.class, (progress, soFar) -> new ShuffleBench(options, progress).run(soFar));
  }

  private List<Query> queries(List<String> workloads) {
    List<String> sets =
        ShuffleBench.Options.QUERY_SETS.stream().filter(workloads::contains).toList();
    if (names != null && sets.size() > 1) {
      throw new IllegalArgumentException(
          "--queries names queries of one set: choose one of " + String.join(", ", sets));
    }
    List<Query> queries = new ArrayList<>();
    if (workloads.contains(TpchTables.ALL.id())) {
      chosen(measure.quick() ? QUICK_QUERIES : Query.usualOfTpch())
          .forEach(name -> queries.add(Query.ofTpch(name)));
    }
    if (workloads.contains(TpcdsTables.ALL.id())) {
      chosen(Query.usualOfTpcds()).forEach(name -> queries.add(Query.ofTpcds(name)));
    }
    return queries;
  }

  private List<String> chosen(List<String> usual) {
    return names == null ? usual : names;
  }

  private ShuffleBench.Options options() {
    List<String> chosen =
        workloads != null
            ? workloads
            : List.of((measure.quick() ? QUICK_WORKLOADS : WORKLOADS).split(",", -1));
    if (timeout < 1 || timeout > LONGEST_TIMEOUT) {
      throw new IllegalArgumentException(
          "--timeout has to be 1 to " + LONGEST_TIMEOUT + " s, not " + timeout);
    }
    return new ShuffleBench.Options(
        chosen.stream()
            .filter(name -> !ShuffleBench.Options.QUERY_SETS.contains(name))
            .flatMap(Workload::named)
            .distinct()
            .toList(),
        queries(chosen),
        transports,
        settings,
        rows != null ? (double) rows / FULL_ROWS : measure.quick() ? QUICK_FACTOR : 1,
        scale != null ? scale : measure.quick() ? 0.1 : 1,
        data.folder(),
        Duration.ofSeconds(timeout),
        warmUps,
        measure.runs(7, 5),
        measure.quick() ? QUICK_BUDGET : Duration.ofHours(3),
        keep.keep());
  }
}
