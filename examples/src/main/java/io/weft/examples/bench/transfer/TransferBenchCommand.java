package io.weft.examples.bench.transfer;

import io.weft.examples.measure.MeasureOptions;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Parses {@code weft bench transfer}. */
@Command(
    name = "transfer",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    description = {
      "Measures what moving blocks and arrays between executors costs: a stream of blocks beside"
          + " plain sockets, small blocks together and one by one, the latency of one block, a"
          + " shuffle of twice the memory beside Spark's, the same with encrypted disks, and how"
          + " soon the loss of a peer is detected.",
      "With --quick it does a quarter of the work, in four to five minutes. Writes a table, JSON"
          + " and Markdown."
    })
public final class TransferBenchCommand implements Callable<Integer> {
  private static final double QUICK_FACTOR = 0.25;

  @Mixin private MeasureOptions measure;

  @Option(
      names = "--rows",
      split = ",",
      defaultValue = "stream,small,latency,spill,encrypted,abort",
      paramLabel = "NAME",
      description =
          "What to measure. Default: ${DEFAULT-VALUE}. network: the stream between two network"
              + " namespaces of 1 and 10 Gbit/s, with each compression; needs root and tc")
  private List<String> rows;

  @Override
  public Integer call() throws Exception {
    TransferBench.Options options = options();
    return measure.report(
        TransferReport.class, progress -> new TransferBench(options, progress).run());
  }

  private TransferBench.Options options() {
    return new TransferBench.Options(
        rows.stream().map(Row::of).collect(Collectors.toSet()),
        measure.runs(7, 3),
        measure.quick() ? QUICK_FACTOR : 1);
  }
}
