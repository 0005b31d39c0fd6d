package io.weft.examples.bench.shuffle;

import io.weft.examples.jobs.JobCost;
import io.weft.examples.jobs.Settle;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideOptions;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import io.weft.examples.terminal.Units;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Runs one workload on one side repeatedly while Java's flight recorder shows where time goes. */
final class ProfileRun {
  private final ShuffleBench.Options options;
  private final String side;
  private final Path out;
  private final Progress progress;

  ProfileRun(ShuffleBench.Options options, String side, Path out, Progress progress) {
    this.options = options;
    this.side = side;
    this.out = out;
    this.progress = progress;
  }

  void run() throws IOException, InterruptedException {
    List<Workload> first = options.workloads().stream().limit(1).toList();
    if (first.isEmpty()) {
      throw new IllegalArgumentException("name a workload to profile, other than the queries");
    }
    Path recordings = Files.createDirectories(out.resolve("recordings"));
    try (Cleanup cleanup = new Cleanup()) {
      WorkFolder work = cleanup.add(WorkFolder.create("weft-profile-", options.keep()));
      SideLauncher launcher = SideLauncher.create(work);
      ShuffleBench.Subject subject =
          new ShuffleBench.Inputs(work, launcher, cleanup, progress)
              .shuffles(first, options.factor())
              .get(0);
      SideProcess process = cleanup.add(launcher.start(recorded(recordings)));
      process.awaitReady();
      progress.say("processes: " + process.processIds());
      repeat(subject, process);
    }
    progress.say("flight recordings of the executors: " + recordings);
  }

  private void repeat(ShuffleBench.Subject subject, SideProcess process)
      throws IOException, InterruptedException {
    for (int run = 1; run <= options.runs(); run++) {
      Optional<JobCost> base = Optional.empty();
      if (subject.base().isPresent()) {
        base = Optional.of(process.call(subject.base().get()));
      }
      process.call(new Settle());
      JobCost cost = process.call(subject.job());
      progress.say(
          String.format(
              "run %d: %s s, %s CPU s; without the shuffle %s s, %s CPU s",
              run,
              Units.seconds(cost.seconds()),
              Units.seconds(cost.cpuSeconds()),
              base.map(JobCost::seconds).map(Units::seconds).orElse("–"),
              base.map(JobCost::cpuSeconds).map(Units::seconds).orElse("–")));
    }
  }

  private SideOptions recorded(Path recordings) {
    Map<String, String> recorder =
        Map.of(
            "spark.executor.extraJavaOptions",
            "-XX:StartFlightRecording=settings=profile,dumponexit=true,filename=" + recordings);
    return side.equals("sort") ? SideOptions.spark(recorder) : SideOptions.weft(side, recorder);
  }
}
