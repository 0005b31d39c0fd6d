package io.weft.examples.bench.survive;

import io.weft.examples.bench.survive.SurviveReport.Death;
import io.weft.examples.bench.survive.SurviveReport.SideResult;
import io.weft.examples.jobs.Settle;
import io.weft.examples.measure.Quiet;
import io.weft.examples.measure.Rounds;
import io.weft.examples.measure.Spread;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Runs the whole benchmark of deaths. For one use and one thread. */
final class SurviveBench {
  private static final int EXECUTORS = 2;
  private static final double PERCENT = 100;

  /** So often an executor may die after its job, for each time of a death. */
  private static final int MAX_LATE = 3;

  private final Options options;
  private final Progress progress;

  /**
   * What to measure.
   *
   * @param seconds length of the job
   * @param rows of each shuffle
   * @param deaths the times of deaths, in percent of the job's tasks
   * @param sides to compare
   * @param undisturbed runs without a death, on each side
   * @param runs with each death, on each side
   * @param keep whether the temporary folder stays
   */
  record Options(
      int seconds,
      long rows,
      List<Integer> deaths,
      List<SurviveSide> sides,
      int undisturbed,
      int runs,
      boolean keep) {
    Options {
      deaths = List.copyOf(deaths);
      sides = List.copyOf(sides);
      if (seconds < 1 || rows < 1) {
        throw new IllegalArgumentException("seconds " + seconds + ", rows " + rows);
      }
      if (deaths.stream().anyMatch(percent -> percent < 0 || percent >= PERCENT)) {
        throw new IllegalArgumentException("deaths are from 0 to 99 percent, not " + deaths);
      }
      Rounds.requireRuns(undisturbed);
      Rounds.requireRuns(runs);
    }
  }

  SurviveBench(Options options, Progress progress) {
    this.options = options;
    this.progress = progress;
  }

  /** Measures one side after the other, because each is two executors on two cores. */
  SurviveReport run() throws IOException, InterruptedException {
    List<SideResult> results = new ArrayList<>();
    try (Cleanup cleanup = new Cleanup()) {
      WorkFolder work = cleanup.add(WorkFolder.create("weft-survive-", options.keep()));
      SideLauncher launcher = SideLauncher.create(work);
      for (SurviveSide side : options.sides()) {
        progress.step("starting " + side.label());
        try (SideProcess cluster =
            cleanup.add(launcher.start(side.options(work.folder("copies"))))) {
          results.add(measure(side, cluster));
        }
      }
    }
    return new SurviveReport(
        options.seconds(), options.rows(), options.undisturbed(), options.runs(), results);
  }

  private SideResult measure(SurviveSide side, SideProcess cluster)
      throws IOException, InterruptedException {
    SurviveJob job = new SurviveJob(options.seconds(), options.rows(), 0);
    progress.step(side.label() + ", warming up");
    cluster.call(new SurviveJob(0, options.rows(), 0));
    List<Double> seconds = new ArrayList<>();
    List<Double> taskCpu = new ArrayList<>();
    List<Double> cpu = new ArrayList<>();
    SurviveJob.Result undisturbed = null;
    for (int run = 0; run < options.undisturbed(); run++) {
      progress.step(side.label() + ", undisturbed");
      prepare(cluster);
      double before = cluster.executorCpuSeconds();
      undisturbed = cluster.call(job);
      // Copies may still be made.
      cluster.call(new Settle());
      cpu.add(cluster.executorCpuSeconds() - before);
      taskCpu.add(undisturbed.cpuSeconds());
      seconds.add(undisturbed.seconds());
    }
    double length = new Spread(seconds).median();
    List<Death> deaths = new ArrayList<>();
    for (int percent : options.deaths()) {
      deaths.add(death(side, cluster, percent, undisturbed, length));
    }
    return new SideResult(
        side,
        new Spread(seconds),
        new Spread(taskCpu),
        new Spread(cpu),
        undisturbed.sum(),
        List.copyOf(deaths));
  }

  private Death death(
      SurviveSide side,
      SideProcess cluster,
      int percent,
      SurviveJob.Result undisturbed,
      double length)
      throws IOException, InterruptedException {
    int killAfter = (int) Math.max(1, undisturbed.tasks() * percent / PERCENT);
    SurviveJob job = new SurviveJob(options.seconds(), options.rows(), killAfter);
    List<Double> lost = new ArrayList<>();
    List<Double> noticed = new ArrayList<>();
    List<Double> replaced = new ArrayList<>();
    int repeated = 0;
    int late = 0;
    boolean equal = true;
    while (lost.size() < options.runs()) {
      progress.step(side.label() + ", death after " + percent + " %");
      prepare(cluster);
      SurviveJob.Result result = cluster.call(job);
      equal &= result.sum().equals(undisturbed.sum());
      if (!result.kill().inTime()) {
        late++;
        if (late == MAX_LATE) {
          throw new IllegalStateException(
              "The executor died after the job's last task, %d times. Choose a longer job than %d s,"
                      .formatted(late, options.seconds())
                  + " or an earlier death than after %d %% of its tasks".formatted(percent));
        }
        continue;
      }
      lost.add(result.seconds() - length);
      noticed.add(result.kill().noticed());
      replaced.add(result.kill().replaced());
      repeated = Math.max(repeated, result.tasks() - undisturbed.tasks());
    }
    return new Death(
        percent,
        new Spread(lost),
        new Spread(noticed),
        new Spread(replaced),
        repeated,
        late,
        equal);
  }

  private static void prepare(SideProcess cluster) throws IOException, InterruptedException {
    cluster.call(new SurviveJob.AwaitExecutors(EXECUTORS));
    cluster.call(new Settle());
    Quiet.await();
  }
}
