package io.weft.examples.bench.shuffle;

import io.weft.examples.jobs.JobCost;
import io.weft.examples.jobs.Settle;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideOptions;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.SideTask;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import io.weft.examples.terminal.Units;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/** Runs one workload on one side repeatedly while Java's flight recorder shows where time goes. */
final class ProfileRun {
  private static final String SORT = "sort";
  private static final String JVM_OPTIONS = "spark.executor.extraJavaOptions";

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

  /**
   * Requires the name of a side: sort, or a transport of Weft.
   *
   * @throws IllegalArgumentException if it is another text
   */
  static void requireSide(String side) {
    if (!side.equals(SORT)) {
      SideOptions.requireTransport(side);
    }
  }

  void run() throws IOException, InterruptedException {
    Path recordings = Files.createDirectories(out.resolve("recordings"));
    try (Cleanup cleanup = new Cleanup()) {
      WorkFolder work = cleanup.add(WorkFolder.create("weft-profile-", options.keep()));
      SideLauncher launcher = SideLauncher.create(work);
      ShuffleBench.Subject subject =
          new ShuffleBench.Inputs(work, launcher, cleanup, progress)
              .subjects(options.onlyFirst())
              .get(0);
      SideProcess process = cleanup.add(launcher.start(recorded(recordings)));
      process.awaitReady();
      progress.say("processes: " + process.processIds());
      subject.open(process, new HashMap<>());
      repeat(subject, process);
    }
    progress.say("flight recordings of the executors: " + recordings);
  }

  private void repeat(ShuffleBench.Subject subject, SideProcess process)
      throws IOException, InterruptedException {
    for (int run = 1; run <= options.runs(); run++) {
      if (subject.base().isPresent()) {
        say(run, "without shuffle", subject.base().get(), process);
      }
      say(run, subject.title(), subject.job(), process);
    }
  }

  private void say(int run, String what, SideTask<JobCost> job, SideProcess process)
      throws IOException, InterruptedException {
    process.call(new Settle());
    double before = process.executorCpuSeconds();
    JobCost cost = process.call(job);
    progress.say(
        String.format(
            "run %d, %s: %s s, %s CPU s, %s process CPU s",
            run,
            what,
            Units.seconds(cost.seconds()),
            Units.seconds(cost.cpuSeconds()),
            Units.seconds(process.executorCpuSeconds() - before)));
  }

  private SideOptions recorded(Path recordings) {
    Map<String, String> settings = new HashMap<>(options.settings());
    String recorder =
        "-XX:StartFlightRecording=settings=profile,dumponexit=true,filename=" + recordings;
    settings.merge(JVM_OPTIONS, recorder, (given, more) -> given + " " + more);
    return side.equals(SORT) ? SideOptions.spark(settings) : SideOptions.weft(side, settings);
  }
}
