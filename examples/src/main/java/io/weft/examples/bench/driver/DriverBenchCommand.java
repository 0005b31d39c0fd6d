package io.weft.examples.bench.driver;

import io.weft.examples.measure.MeasureOptions;
import io.weft.examples.side.WorkFolder;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Parses {@code weft bench driver}. */
@Command(
    name = "driver",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    description = {
      "Measures the driver with many executors. Fake executors send the real messages to a real"
          + " driver: each announces itself, then all look up all others at the same time.",
      "Needs about 4 GB of memory for 4,000 executors. With --quick it takes half a minute, up to"
          + " 1,000 executors. Writes a table, JSON and Markdown."
    })
public final class DriverBenchCommand implements Callable<Integer> {
  @Option(
      names = "--executors",
      split = ",",
      paramLabel = "N",
      description = "Numbers of executors. Default: 10,100,1000,4000, or 10,100,1000 with --quick")
  private List<Integer> executors;

  @Mixin private MeasureOptions measure;

  @Mixin private WorkFolder.KeepOption keep;

  @Override
  public Integer call() throws Exception {
    List<Integer> byDefault =
        measure.quick() ? List.of(10, 100, 1000) : List.of(10, 100, 1000, 4000);
    int runs = measure.runs(3, 1);
    return measure.report(
        DriverReport.class,
        progress ->
            new DriverBench(executors == null ? byDefault : executors, runs, keep.keep(), progress)
                .run());
  }
}
