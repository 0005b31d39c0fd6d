package io.weft.examples.bench.driver;

import io.weft.examples.measure.Environment;
import io.weft.examples.measure.Quiet;
import io.weft.examples.measure.Rounds;
import io.weft.examples.measure.Spread;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideOptions;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Runs the benchmark of the driver. For one use and one thread. */
final class DriverBench {
  private static final String HEAP = "92m";
  private static final String LARGE_HEAP = "640m";

  /** Above the number of executors that the goal is for, more heap is needed. */
  private static final int GOAL_EXECUTORS = 1000;

  /** Lets Spark start with a small heap; the driver runs no task. */
  private static final Map<String, String> SMALL = Map.of("spark.testing.memory", "1073741824");

  private final List<Integer> sizes;
  private final int runs;
  private final boolean keep;
  private final Progress progress;

  /**
   * Creates a benchmark.
   *
   * @param sizes numbers of executors, each at least 2
   * @param runs that count, after one warm-up
   * @param keep whether the temporary folder stays
   */
  DriverBench(List<Integer> sizes, int runs, boolean keep, Progress progress) {
    for (int size : sizes) {
      if (size < 2) {
        throw new IllegalArgumentException("at least two executors are needed, not " + size);
      }
    }
    Rounds.requireRuns(runs);
    this.sizes = List.copyOf(sizes);
    this.runs = runs;
    this.keep = keep;
    this.progress = progress;
  }

  DriverReport run() throws IOException, InterruptedException {
    try (Cleanup cleanup = new Cleanup()) {
      WorkFolder work = cleanup.add(WorkFolder.create("weft-driver-", keep));
      SideLauncher launcher = SideLauncher.create(work);
      List<DriverReport.Row> rows = new ArrayList<>();
      for (int executors : sizes) {
        progress.step(executors + " executors: starting the driver");
        try (SideProcess driver = cleanup.add(launcher.start(driver(executors)))) {
          rows.add(measure(driver, executors));
        }
      }
      return new DriverReport(Environment.current(), rows);
    }
  }

  private static SideOptions driver(int executors) {
    Map<String, String> conf = new HashMap<>(SMALL);
    conf.put("spark.master", "local[1]");
    conf.put("spark.plugins", FakeExecutors.PLUGIN);
    String heap = executors > GOAL_EXECUTORS ? LARGE_HEAP : HEAP;
    return new SideOptions("driver-" + executors, "the driver", heap, conf);
  }

  private DriverReport.Row measure(SideProcess driver, int executors)
      throws IOException, InterruptedException {
    DriverReading.Figures start = driver.call(new DriverReading());
    List<Double> seconds = new ArrayList<>();
    List<Double> driverSeconds = new ArrayList<>();
    try (FakeExecutors fakes = new FakeExecutors(start.port(), executors)) {
      progress.step(executors + " executors: announcing");
      double announcing = fakes.announce();
      for (int run = 0; run <= runs; run++) {
        progress.step(executors + " executors: looking up, run " + run + " of " + runs);
        Quiet.await();
        double before = driver.call(new DriverReading()).cpuSeconds();
        double took = fakes.lookUp();
        double after = driver.call(new DriverReading()).cpuSeconds();
        if (run > 0) {
          seconds.add(took);
          driverSeconds.add(after - before);
        }
      }
      FakeExecutors.Bytes bytes = fakes.bytesOfOneLookUp();
      DriverReading.Figures end = driver.call(new DriverReading());
      return new DriverReport.Row(
          executors,
          announcing,
          new Spread(seconds),
          new Spread(driverSeconds),
          bytes.request(),
          bytes.answer(),
          start.maxBytes() - start.liveBytes(),
          end.liveBytes() - start.liveBytes(),
          end.threads());
    }
  }
}
