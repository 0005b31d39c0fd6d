package io.weft.examples.bench.feed;

import io.weft.examples.jobs.Settle;
import io.weft.examples.jobs.ShuffleJob;
import io.weft.examples.jobs.WriteInput;
import io.weft.examples.measure.Quiet;
import io.weft.examples.measure.Rounds;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideOptions;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import java.io.IOException;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/** Runs the whole benchmark of feeds. For one use and one thread. */
final class FeedBench {
  private static final int RANKS = 2;
  private static final int BATCH_ROWS = 256;

  private final long tensors;
  private final int runs;
  private final boolean keep;
  private final Progress progress;

  /**
   * Creates a benchmark.
   *
   * @param tensors of 4 KiB, at least 1
   * @param runs of each hand-off that count, after one warm-up
   * @param keep whether the temporary folder stays
   */
  FeedBench(long tensors, int runs, boolean keep, Progress progress) {
    if (tensors < 1) {
      throw new IllegalArgumentException("at least one tensor is needed, not " + tensors);
    }
    Rounds.requireRuns(runs);
    this.tensors = tensors;
    this.runs = runs;
    this.keep = keep;
    this.progress = progress;
  }

  FeedReport run() throws IOException, InterruptedException {
    try (Cleanup cleanup = new Cleanup()) {
      WorkFolder work = cleanup.add(WorkFolder.create("weft-feed-", keep));
      SideLauncher launcher = SideLauncher.create(work);
      String input = work.path().resolve("tensors").toString();
      progress.step("writing the input");
      try (SideProcess writer = cleanup.add(launcher.start(SideOptions.writer()))) {
        writer.call(new WriteInput(WriteInput.Kind.TENSORS, tensors, input));
      }
      progress.step("starting a cluster of two executors");
      SideProcess cluster = cleanup.add(launcher.start(SideOptions.weft("auto", Map.of())));
      FeedReport report = measure(cluster, input, work.path().resolve("hand-off").toString());
      progress.step("stopping the cluster");
      return report;
    }
  }

  private FeedReport measure(SideProcess cluster, String input, String files)
      throws IOException, InterruptedException {
    List<Double> scans = new ArrayList<>();
    Map<FeedSide, List<FeedRead.Result>> results = new EnumMap<>(FeedSide.class);
    List<Step> steps = new ArrayList<>();
    steps.add(
        new Step(
            "reading alone",
            run -> {
              double seconds = cluster.call(scan(input)).seconds();
              if (run >= 0) {
                scans.add(seconds);
              }
            }));
    for (FeedSide side : FeedSide.values()) {
      FeedRead read = new FeedRead(side, input, files, RANKS, BATCH_ROWS);
      steps.add(
          new Step(
              side.label(),
              run -> {
                double before = cluster.executorCpuSeconds();
                FeedRead.Result result = cluster.call(read);
                result = result.onProcessors(cluster.executorCpuSeconds() - before);
                if (run >= 0) {
                  results.computeIfAbsent(side, key -> new ArrayList<>()).add(result);
                }
              }));
    }
    new Rounds(1, runs)
        .run(
            steps,
            (step, run) -> {
              String which = run < 0 ? "warming up" : "run " + (run + 1) + " of " + runs;
              progress.step(step.label() + ", " + which);
              cluster.call(new Settle());
              Quiet.await();
              step.action().run(run);
            });
    return new FeedReport(scans, results);
  }

  /** What takes a turn: the scan of the input or a hand-off. */
  private record Step(String label, Action action) {
    /** Runs once; the run is negative in a warm-up round. */
    private interface Action {
      void run(int run) throws IOException, InterruptedException;
    }
  }

  private static ShuffleJob scan(String input) {
    return new ShuffleJob(new ShuffleJob.Source.Parquet(input), new ShuffleJob.Exchange.None());
  }
}
