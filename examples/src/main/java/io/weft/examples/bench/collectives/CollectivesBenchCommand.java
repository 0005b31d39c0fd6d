package io.weft.examples.bench.collectives;

import io.weft.collectives.DataType;
import io.weft.collectives.OperationKind;
import io.weft.examples.measure.MeasureOptions;
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
      "Measures what collectives between processes of this machine cost, in the manner of"
          + " nccl-tests. Weft alternates with OpenMPI, where OpenMPI is installed with its"
          + " compiler wrapper (Debian: openmpi-bin, libopenmpi-dev, gcc).",
      "With --quick it measures fewer operations and sizes and ends within three minutes. Writes a"
          + " table, JSON, Markdown and a chart."
    })
public final class CollectivesBenchCommand implements Callable<Integer> {
  private static final String SIZES = "8,64,512,4K,32K,256K,1M,4M,16M,64M,256M";
  private static final String QUICK_SIZES = "8,1K,32K,1M,8M,64M";
  private static final String OPERATIONS =
      "all-reduce,all-gather,reduce-scatter,all-to-all,ragged-all-to-all,broadcast,reduce";
  private static final String QUICK_OPERATIONS = "all-reduce,all-gather";

  @Mixin private MeasureOptions measure;

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
      split = ",",
      defaultValue = "2",
      paramLabel = "N",
      description = "Processes on each side, such as 2 or 2,4. Default: ${DEFAULT-VALUE}")
  private List<Integer> ranks;

  @Option(
      names = "--in-place",
      description = "One buffer to send from and receive into; without ragged-all-to-all")
  private boolean inPlace;

  @Option(
      names = "--transport",
      split = ",",
      defaultValue = "shm,symmetric",
      paramLabel = "KIND",
      description =
          "Transports of Weft's ranks: shm (shared memory, private buffers), symmetric (shared"
              + " memory, buffers in it), recorded (symmetric, 50 small operations in a"
              + " recording), tcp. Default: ${DEFAULT-VALUE}")
  private List<String> transports;

  @Option(names = "--no-mpi", description = "Leave OpenMPI out")
  private boolean noMpi;

  @Option(
      names = "--no-bind",
      description =
          "Let the ranks of all sides move between processors. Otherwise each is bound to its own"
              + " processor, as mpirun does it")
  private boolean noBind;

  @Override
  public Integer call() throws Exception {
    CollectivesBench.Options options = options();
    return measure.report(
        CollectivesReport.class, progress -> new CollectivesBench(options, progress).run());
  }

  private CollectivesBench.Options options() {
    return new CollectivesBench.Options(
        operations(),
        chosen(sizes, measure.quick() ? QUICK_SIZES : SIZES).stream().map(Sizes::parse).toList(),
        DataType.parse(type),
        CollectiveCase.reduction(reduction),
        ranks,
        inPlace,
        transports.stream().map(RankOptions.Kind::of).toList(),
        !noMpi,
        !noBind,
        measure.runs(7, 3),
        Duration.ofMillis(measure.quick() ? 40 : 80));
  }

  private List<OperationKind> operations() {
    return chosen(operations, measure.quick() ? QUICK_OPERATIONS : OPERATIONS).stream()
        .map(CollectiveCase::operation)
        .filter(kind -> operations != null || !inPlace || CollectiveCase.worksInPlace(kind))
        .toList();
  }

  private static List<String> chosen(List<String> given, String otherwise) {
    return given != null ? given : List.of(otherwise.split(",", -1));
  }
}
