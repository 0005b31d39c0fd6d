package io.weft.examples.demo;

import io.weft.examples.side.WorkFolder;
import io.weft.examples.tables.TableSet;
import io.weft.examples.terminal.Progress;
import io.weft.examples.tpch.TpchQuery;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Parses {@code weft demo}. */
@Command(
    name = "demo",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    description = {
      "Runs TPC-H queries under Spark's own shuffle and under Weft, in alternating runs, on a"
          + " cluster of two executors. Checks that all results are equal and shows the times and"
          + " the paths of the data.",
      "Needs about 10 GB of memory. Ends with 0 if all results are equal."
    })
public final class DemoCommand implements Callable<Integer> {
  @Option(
      names = "--scale",
      defaultValue = "0.2",
      paramLabel = "FACTOR",
      description = "TPC-H scale factor; 1 is 6 million order lines. Default: ${DEFAULT-VALUE}")
  private double scale;

  @Option(
      names = "--queries",
      split = ",",
      defaultValue = "3,5,7,9,10,18,21",
      paramLabel = "N",
      description =
          "Numbers of TPC-H queries: 1 to 22 except 1, 6, 14, 15 and 19. Default: ${DEFAULT-VALUE}")
  private List<Integer> queries;

  @Option(
      names = "--runs",
      defaultValue = "3",
      paramLabel = "N",
      description = "Runs of each query that count, after one warm-up. Default: ${DEFAULT-VALUE}")
  private int runs;

  @Mixin private TableSet.FolderOption data;

  @Option(
      names = "--transport",
      defaultValue = "auto",
      paramLabel = "MODE",
      description = "How Weft moves data: auto, shm or tcp. Default: ${DEFAULT-VALUE}")
  private String transport;

  @Mixin private WorkFolder.KeepOption keep;

  @Override
  public Integer call() throws Exception {
    Demo.Options options =
        new Demo.Options(
            scale,
            queries.stream().map(TpchQuery::of).toList(),
            runs,
            data.folder(),
            transport,
            keep.keep());
    Progress progress = Progress.toErrors();
    return new Demo(options, progress, System.out).run() ? 0 : 1;
  }
}
