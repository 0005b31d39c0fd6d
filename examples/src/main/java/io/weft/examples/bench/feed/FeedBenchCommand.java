package io.weft.examples.bench.feed;

import io.weft.examples.options.KeepFolder;
import io.weft.examples.options.ReportFolder;
import io.weft.examples.terminal.Progress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Parses {@code weft bench feed}. */
@Command(
    name = "feed",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    description = {
      "What it costs to hand tensors of 1,024 floats from map tasks to two training ranks: by a"
          + " Weft feed, and by Spark's shuffle with Parquet files in between, compressed as Spark does"
          + " it by default and not at all, in turn.",
      "Needs about 8 GB of memory. Writes a table."
    })
public final class FeedBenchCommand implements Callable<Integer> {
  @Option(
      names = "--tensors",
      defaultValue = "150000",
      paramLabel = "N",
      description = "How many, of 4 KiB each. Default: ${DEFAULT-VALUE}")
  private long tensors;

  @Option(
      names = "--runs",
      defaultValue = "5",
      paramLabel = "N",
      description = "Runs that count, after one to warm up. Default: ${DEFAULT-VALUE}")
  private int runs;

  @Mixin private ReportFolder out;

  @Mixin private KeepFolder keep;

  @Override
  public Integer call() throws Exception {
    Progress progress = Progress.toErrors();
    Path folder = out.create();
    FeedReport report = new FeedBench(tensors, runs, keep.keep(), progress).run();
    progress.clear();
    System.out.println();
    System.out.print(report.toText());
    System.out.println(
        "Written: " + Files.writeString(folder.resolve("feed.md"), report.toMarkdown()));
    return report.equal() ? 0 : 1;
  }
}
