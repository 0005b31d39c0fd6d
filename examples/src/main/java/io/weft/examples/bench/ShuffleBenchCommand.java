package io.weft.examples.bench;

import io.weft.examples.options.KeepFolder;
import io.weft.examples.options.ReportFolder;
import io.weft.examples.terminal.Progress;
import io.weft.examples.tpch.TpchQuery;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
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
      "What a shuffle costs under Spark's sort shuffle and under Weft, for several kinds of data, on"
          + " clusters of two executors that take turns.",
      "Needs about 15 GB of memory. Writes a table, JSON, Markdown and a chart."
    })
public final class ShuffleBenchCommand implements Callable<Integer> {
  private static final long FULL_ROWS = Workload.NUMERIC.rows(1);
  private static final double QUICK_FACTOR = 0.1;
  private static final Duration QUICK_BUDGET = Duration.ofSeconds(100);
  private static final String WORKLOADS = "numeric,strings,tensors,computed,small-blocks,tpch";
  private static final String QUICK_WORKLOADS = "numeric,tensors,tpch";
  private static final List<Integer> QUICK_QUERIES = List.of(18);
  private static final List<Integer> QUERIES =
      List.of(3, 4, 5, 7, 8, 9, 10, 12, 13, 16, 17, 18, 20, 21);

  @Option(names = "--quick", description = "Smaller and fewer: ends within three minutes")
  private boolean quick;

  @Option(
      names = "--workloads",
      split = ",",
      paramLabel = "NAME",
      description = "What to measure. Default: " + WORKLOADS + "; with --quick: " + QUICK_WORKLOADS)
  private List<String> workloads;

  @Option(
      names = "--queries",
      split = ",",
      paramLabel = "N",
      description = "Numbers of the TPC-H queries. Default: 14 of them, or 18 with --quick")
  private List<Integer> numbers;

  @Option(
      names = "--transports",
      split = ",",
      defaultValue = "shm,tcp",
      paramLabel = "MODE",
      description = "How Weft moves data. Default: ${DEFAULT-VALUE}")
  private List<String> transports;

  @Option(
      names = "--runs",
      paramLabel = "N",
      description = "Runs that count, on each side. Default: 7, or up to 5 with --quick")
  private Integer runs;

  @Option(
      names = "--rows",
      paramLabel = "N",
      description =
          "Rows of the numeric workload; the others change alike. Default: 10000000, or a tenth"
              + " with --quick")
  private Long rows;

  @Option(
      names = "--scale",
      paramLabel = "FACTOR",
      description = "TPC-H scale factor. Default: 1, or 0.1 with --quick")
  private Double scale;

  @Mixin private ReportFolder out;

  @Mixin private KeepFolder keep;

  @Option(
      names = "--profile",
      paramLabel = "SIDE",
      description =
          "Instead of measuring, run the first workload on one side (sort, shm or tcp) again and"
              + " again, with Java's flight recorder on in the executors")
  private String profile;

  @Override
  public Integer call() throws Exception {
    Progress progress = Progress.toErrors();
    ShuffleBenchOptions options = options();
    if (profile != null) {
      new ProfileRun(options, profile, progress).run();
      return 0;
    }
    BenchReport report = new ShuffleBench(options, progress).run();
    progress.clear();
    System.out.println();
    System.out.print(new ReportTable(report).toText());
    ReportFiles.write(report, options.out())
        .forEach(file -> System.out.println("Written: " + file));
    return report.results().stream().allMatch(WorkloadResult::equal) ? 0 : 1;
  }

  private List<TpchQuery> queries() {
    List<Integer> usual = quick ? QUICK_QUERIES : QUERIES;
    return (numbers == null ? usual : numbers).stream().map(TpchQuery::of).toList();
  }

  private ShuffleBenchOptions options() throws IOException {
    List<String> chosen =
        workloads != null
            ? workloads
            : List.of((quick ? QUICK_WORKLOADS : WORKLOADS).split(",", -1));
    boolean queries = chosen.contains(ShuffleBenchOptions.TPCH);
    return new ShuffleBenchOptions(
        chosen.stream()
            .filter(name -> !name.equals(ShuffleBenchOptions.TPCH))
            .map(Workload::of)
            .toList(),
        queries ? queries() : List.of(),
        transports,
        rows != null ? (double) rows / FULL_ROWS : quick ? QUICK_FACTOR : 1,
        scale != null ? scale : quick ? 0.1 : 1,
        runs != null ? runs : quick ? 5 : 7,
        quick ? QUICK_BUDGET : Duration.ofHours(3),
        out.create(),
        keep.keep());
  }
}
