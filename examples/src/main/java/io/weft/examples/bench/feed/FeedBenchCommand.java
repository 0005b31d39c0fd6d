package io.weft.examples.bench.feed;

import io.weft.examples.measure.MeasureOptions;
import io.weft.examples.side.WorkFolder;
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
      "Measures what it costs to hand tensors of 1,024 floats from map tasks to two training ranks:"
          + " by a Weft feed, and by Spark's shuffle with Parquet files, with Spark's default"
          + " compression and without compression, in alternating rounds.",
      "Needs about 8 GB of memory. With --quick it takes two minutes. Writes a table, JSON and"
          + " Markdown."
    })
public final class FeedBenchCommand implements Callable<Integer> {
  @Option(
      names = "--tensors",
      paramLabel = "N",
      description = "Number of tensors of 4 KiB. Default: 150000, or 15000 with --quick")
  private Long tensors;

  @Mixin private MeasureOptions measure;

  @Mixin private WorkFolder.KeepOption keep;

  @Override
  public Integer call() throws Exception {
    long count = tensors != null ? tensors : measure.quick() ? 15_000 : 150_000;
    int runs = measure.runs(5, 3);
    return measure.report(
        FeedReport.class, progress -> new FeedBench(count, runs, keep.keep(), progress).run());
  }
}
