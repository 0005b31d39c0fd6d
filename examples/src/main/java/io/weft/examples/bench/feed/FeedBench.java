package io.weft.examples.bench.feed;

import io.weft.examples.jobs.Settle;
import io.weft.examples.jobs.ShuffleJob;
import io.weft.examples.jobs.Source;
import io.weft.examples.jobs.WriteInput;
import io.weft.examples.measure.Quiet;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.Sides;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import java.io.IOException;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/** The benchmark of feeds from start to end. Used once, by one thread. */
final class FeedBench {
  private static final int RANKS = 2;
  private static final int BATCH_ROWS = 256;

  private final long tensors;
  private final int runs;
  private final boolean keep;
  private final Progress progress;

  /**
   * A benchmark.
   *
   * @param runs of each hand-off that count, after one to warm up
   * @param keep whether the temporary folder stays
   */
  FeedBench(long tensors, int runs, boolean keep, Progress progress) {
    if (tensors < 1 || runs < 1) {
      throw new IllegalArgumentException("there must be a tensor and a run");
    }
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
      try (SideProcess writer = cleanup.add(launcher.start(Sides.writer()))) {
        writer.call(new WriteInput(WriteInput.Kind.TENSORS, tensors, input));
      }
      progress.step("starting a cluster of two executors");
      SideProcess cluster = cleanup.add(launcher.start(Sides.weft("auto", Map.of())));
      FeedReport report = measure(cluster, input, work.path().resolve("hand-off").toString());
      progress.step("stopping the cluster");
      return report;
    }
  }

  private FeedReport measure(SideProcess cluster, String input, String files)
      throws IOException, InterruptedException {
    List<Double> scans = new ArrayList<>();
    Map<FeedSide, List<FeedResult>> results = new EnumMap<>(FeedSide.class);
    for (int run = -1; run < runs; run++) {
      double scan = cluster.call(scan(input)).seconds();
      if (run >= 0) {
        scans.add(scan);
      }
      for (FeedSide side : FeedSide.order(run)) {
        progress.step(
            side.label() + (run < 0 ? ", warming up" : ", run " + (run + 1) + " of " + runs));
        cluster.call(new Settle());
        Quiet.await();
        FeedResult result = cluster.call(new FeedRead(side, input, files, RANKS, BATCH_ROWS));
        if (run >= 0) {
          results.computeIfAbsent(side, key -> new ArrayList<>()).add(result);
        }
      }
    }
    return new FeedReport(scans, results);
  }

  private static ShuffleJob scan(String input) {
    return new ShuffleJob(new Source.Parquet(input), 0, "k");
  }
}
