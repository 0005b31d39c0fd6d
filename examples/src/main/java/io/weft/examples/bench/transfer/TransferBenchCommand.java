package io.weft.examples.bench.transfer;

import io.weft.examples.options.ReportFolder;
import io.weft.examples.terminal.Progress;
import java.io.IOException;
import java.nio.file.Path;
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
      "What moving blocks and arrays between executors costs: a stream of blocks beside plain"
          + " sockets, small blocks together and one by one, the latency of one block, a shuffle of"
          + " twice the memory beside Spark's, the same with encrypted disks, and how soon a dead"
          + " peer is known.",
      "Writes a table, JSON and Markdown."
    })
public final class TransferBenchCommand implements Callable<Integer> {
  private static final double QUICK_FACTOR = 0.25;

  @Option(names = "--quick", description = "A quarter of the work: four to five minutes")
  private boolean quick;

  @Option(
      names = "--rows",
      split = ",",
      defaultValue = "stream,small,latency,spill,encrypted,abort",
      paramLabel = "NAME",
      description = "What to measure. Default: ${DEFAULT-VALUE}")
  private List<String> rows;

  @Option(
      names = "--runs",
      paramLabel = "N",
      description = "Runs that count, on each side. Default: 7, or 3 with --quick")
  private Integer runs;

  @Option(
      names = "--from",
      paramLabel = "JSON",
      description = "Write the reports of an earlier run anew from its JSON; measures nothing")
  private Path from;

  @Mixin private ReportFolder out;

  @Override
  public Integer call() throws Exception {
    Path folder = out.create();
    TransferReport report = from == null ? measure() : TransferFiles.read(from);
    System.out.println();
    System.out.print(new TransferTable(report).toText());
    TransferFiles.write(report, folder).forEach(file -> System.out.println("Written: " + file));
    return 0;
  }

  private TransferReport measure() throws IOException, InterruptedException {
    Progress progress = Progress.toErrors();
    TransferReport report = new TransferBench(options(), progress).run();
    progress.clear();
    return report;
  }

  private TransferBenchOptions options() {
    return new TransferBenchOptions(
        rows.stream().map(Row::of).collect(Collectors.toSet()),
        runs != null ? runs : quick ? 3 : 7,
        quick ? QUICK_FACTOR : 1);
  }
}
