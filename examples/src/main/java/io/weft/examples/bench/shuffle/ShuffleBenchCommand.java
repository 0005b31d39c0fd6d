package io.weft.examples.bench.shuffle;

import io.weft.examples.measure.MeasureOptions;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import io.weft.examples.tpch.TpchQuery;
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
      "Measures what a shuffle costs under Spark's sort shuffle and under Weft, for several kinds"
          + " of data, on clusters of two executors that take turns.",
      "Needs about 15 GB of memory. With --quick it ends within three minutes. Writes a table,"
          + " JSON, Markdown and a chart."
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

  @Mixin private MeasureOptions measure;

  @Option(
      names = "--workloads",
      split = ",",
      paramLabel = "NAME",
      description = {
        "What to measure. Default: " + WORKLOADS + "; with --quick: " + QUICK_WORKLOADS + ".",
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
      names = "--rows",
      paramLabel = "N",
      description =
          "Rows of the numeric workload; the others change in proportion. Default: 10000000, or a"
              + " tenth with --quick")
  private Long rows;

  @Option(
      names = "--scale",
      paramLabel = "FACTOR",
      description = "TPC-H scale factor. Default: 1, or 0.1 with --quick")
  private Double scale;

  @Mixin private WorkFolder.KeepOption keep;

  @Option(
      names = "--profile",
      paramLabel = "SIDE",
      description =
          "Instead of measuring, run the first workload on one side (sort, shm or tcp) repeatedly,"
              + " with Java's flight recorder on in the executors")
  private String profile;

  @Override
  public Integer call() throws Exception {
    ShuffleBench.Options options = options();
    if (profile != null) {
      new ProfileRun(options, profile, measure.createFolder(), Progress.toErrors()).run();
      return 0;
    }
    return measure.report(
        ShuffleReport.class, progress -> new ShuffleBench(options, progress).run());
  }

  private List<TpchQuery> queries() {
    List<Integer> usual = measure.quick() ? QUICK_QUERIES : QUERIES;
    return (numbers == null ? usual : numbers).stream().map(TpchQuery::of).toList();
  }

  private ShuffleBench.Options options() {
    List<String> chosen =
        workloads != null
            ? workloads
            : List.of((measure.quick() ? QUICK_WORKLOADS : WORKLOADS).split(",", -1));
    boolean queries = chosen.contains(ShuffleBench.Options.TPCH);
    return new ShuffleBench.Options(
        chosen.stream()
            .filter(name -> !name.equals(ShuffleBench.Options.TPCH))
            .flatMap(Workload::named)
            .distinct()
            .toList(),
        queries ? queries() : List.of(),
        transports,
        rows != null ? (double) rows / FULL_ROWS : measure.quick() ? QUICK_FACTOR : 1,
        scale != null ? scale : measure.quick() ? 0.1 : 1,
        measure.runs(7, 5),
        measure.quick() ? QUICK_BUDGET : Duration.ofHours(3),
        keep.keep());
  }
}
