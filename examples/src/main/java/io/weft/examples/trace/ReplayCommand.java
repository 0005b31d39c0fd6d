package io.weft.examples.trace;

import io.weft.examples.measure.MeasureOptions;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.spark.SparkConf;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Parses {@code weft replay}. */
@Command(
    name = "replay",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    description = {
      "Writes and reads blocks in the pattern of a trace (bin/weft trace): the same sizes, peers"
          + " and order, with other data and without the work of tasks, all on this machine."
          + " Compares bytes, time and wait with the trace.",
      "Executors of one host read each other in place. Executors of other hosts are reached over"
          + " the loopback network. Transfers of arrays run after the shuffles, in host memory."
    })
public final class ReplayCommand implements Callable<Integer> {
  @Mixin private MeasureOptions measure;

  @Parameters(paramLabel = "TRACE", description = "The file that bin/weft trace wrote")
  private Path trace;

  @Option(
      names = "--conf",
      paramLabel = "KEY=VALUE",
      description = "A setting of the replay, for example spark.weft.transport=tcp; repeatable")
  private Map<String, String> settings = Map.of();

  @Option(
      names = "--scale",
      defaultValue = "1",
      paramLabel = "FACTOR",
      description = "Factor of all sizes, above 0 and at most 1. Default: ${DEFAULT-VALUE}")
  private double scale;

  @Override
  public Integer call() throws Exception {
    if (!(scale > 0 && scale <= 1)) {
      throw new IllegalArgumentException("--scale has to be above 0 and at most 1, not " + scale);
    }
    SparkConf conf = new SparkConf(false);
    settings.forEach(conf::set);
    ReplayExecutors.check(conf);
    int runs = measure.runs(3, 1);
    return measure.report(
        ReplayReport.class,
        progress -> new Replay(TracePattern.read(trace), conf, scale, progress).run(runs));
  }
}
