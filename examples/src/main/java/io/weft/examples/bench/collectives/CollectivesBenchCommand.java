package io.weft.examples.bench.collectives;

import io.weft.collectives.buffer.DataType;
import io.weft.examples.options.ReportFolder;
import io.weft.examples.terminal.Progress;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Parses {@code weft bench collectives}. */
@Command(
    name = "collectives",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    description = {
      "What collectives between processes of this machine cost, in the manner of nccl-tests: Weft's"
          + " and, where it is installed with its compiler wrapper (Debian: openmpi-bin,"
          + " libopenmpi-dev, gcc), OpenMPI's, which take turns.",
      "Writes a table, JSON, Markdown and a chart."
    })
public final class CollectivesBenchCommand implements Callable<Integer> {
  private static final String SIZES = "8,64,512,4K,32K,256K,1M,4M,16M,64M,256M";
  private static final String QUICK_SIZES = "8,1K,32K,1M,8M,64M";
  private static final String OPERATIONS =
      "all-reduce,all-gather,reduce-scatter,all-to-all,broadcast,reduce";
  private static final String QUICK_OPERATIONS = "all-reduce,all-gather";

  @Option(names = "--quick", description = "Fewer operations and sizes: ends within a minute")
  private boolean quick;

  @Option(
      names = "--operations",
      split = ",",
      paramLabel = "NAME",
      description =
          "What to measure. Default: " + OPERATIONS + "; with --quick: " + QUICK_OPERATIONS)
  private List<String> operations;

  @Option(
      names = "--sizes",
      split = ",",
      paramLabel = "BYTES",
      description =
          "Sizes as nccl-tests counts them. Default: " + SIZES + "; with --quick: " + QUICK_SIZES)
  private List<String> sizes;

  @Option(
      names = "--type",
      defaultValue = "float32",
      paramLabel = "TYPE",
      description = "Type of the elements, such as int8 or bfloat16. Default: ${DEFAULT-VALUE}")
  private String type;

  @Option(
      names = "--op",
      defaultValue = "sum",
      paramLabel = "REDUCTION",
      description = "sum, product, min, max or average. Default: ${DEFAULT-VALUE}")
  private String reduction;

  @Option(
      names = "--ranks",
      defaultValue = "2",
      paramLabel = "N",
      description = "Processes on each side. Default: ${DEFAULT-VALUE}")
  private int ranks;

  @Option(names = "--in-place", description = "One buffer to send from and receive into")
  private boolean inPlace;

  @Option(
      names = "--transport",
      split = ",",
      defaultValue = "shm,symmetric",
      paramLabel = "KIND",
      description =
          "How Weft's ranks talk: shm (shared memory, private buffers), symmetric (shared memory,"
              + " buffers in it), tcp. Default: ${DEFAULT-VALUE}")
  private List<String> transports;

  @Option(names = "--no-mpi", description = "Leave OpenMPI out")
  private boolean noMpi;

  @Option(
      names = "--no-bind",
      description =
          "Let the ranks of all sides move between processors. Otherwise each has one of its own,"
              + " as mpirun does it")
  private boolean noBind;

  @Option(
      names = "--from",
      paramLabel = "JSON",
      description = "Write the reports of an earlier run anew from its JSON; measures nothing")
  private Path from;

  @Option(
      names = "--runs",
      paramLabel = "N",
      description = "Runs that count, on each side. Default: 7, or 3 with --quick")
  private Integer runs;

  @Mixin private ReportFolder out;

  @Override
  public Integer call() throws Exception {
    Path folder = out.create();
    CollectivesReport report = from == null ? measure() : CollectivesFiles.read(from);
    System.out.println();
    System.out.print(new CollectivesTable(report).toText());
    CollectivesFiles.write(report, folder).forEach(file -> System.out.println("Written: " + file));
    boolean right =
        report.results().stream()
            .flatMap(result -> result.sides().stream())
            .allMatch(side -> side.errors() == 0);
    return right ? 0 : 1;
  }

  private CollectivesReport measure() throws IOException, InterruptedException {
    Progress progress = Progress.toErrors();
    CollectivesReport report = new CollectivesBench(options(), progress).run();
    progress.clear();
    return report;
  }

  private CollectivesBenchOptions options() {
    return new CollectivesBenchOptions(
        chosen(operations, quick ? QUICK_OPERATIONS : OPERATIONS).stream()
            .map(CollectiveCase::operation)
            .toList(),
        chosen(sizes, quick ? QUICK_SIZES : SIZES).stream().map(Sizes::parse).toList(),
        DataType.parse(type),
        CollectiveCase.reduction(reduction),
        ranks,
        inPlace,
        transports.stream().map(RankOptions.Kind::of).toList(),
        !noMpi,
        !noBind,
        runs != null ? runs : quick ? 3 : 7,
        Duration.ofMillis(quick ? 40 : 80));
  }

  private static List<String> chosen(List<String> given, String otherwise) {
    return given != null ? given : List.of(otherwise.split(",", -1));
  }
}
