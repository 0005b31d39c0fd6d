package io.weft.examples.train;

import io.weft.examples.jobs.OpenTables;
import io.weft.examples.jobs.Settle;
import io.weft.examples.measure.Quiet;
import io.weft.examples.measure.Rounds;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideOptions;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.tables.TableWriter;
import io.weft.examples.terminal.Progress;
import io.weft.examples.tpch.TpchTables;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** Runs the whole example. For one use and one thread. */
final class TrainRun {
  private static final int RANKS = 2;
  private static final int RESTARTS = 2;
  private static final int CHECKPOINT_STEPS = 100;
  private static final long SEED = 17;
  private static final long BUCKET_BYTES = 16 << 10;

  private final Options options;
  private final ModelProvider models;
  private final Progress progress;
  private final PrintStream out;

  TrainRun(Options options, ModelProvider models, Progress progress, PrintStream out) {
    this.options = options;
    this.models = models;
    this.progress = progress;
    this.out = out;
  }

  void run() throws IOException, InterruptedException {
    List<TrainOnce.Outcome> outcomes = new ArrayList<>();
    Map<String, NavigableMap<Long, Double>> curves = new LinkedHashMap<>();
    progress.step("unpacking " + models.name());
    models.prepare();
    try (Cleanup cleanup = new Cleanup()) {
      WorkFolder work = cleanup.add(WorkFolder.create("weft-train-", options.keep()));
      SideLauncher launcher = SideLauncher.create(work);
      Path tables =
          new TableWriter(launcher, cleanup, progress)
              .provide(TpchTables.ALL, options.data(), work, options.scale());
      progress.step("starting a cluster of two executors");
      SideProcess side = cleanup.add(launcher.start(SideOptions.weft("auto", Map.of())));
      side.call(new OpenTables(tables.toString(), TpchTables.ALL.names()));
      List<TrainOnce.HandOff> turns = turns();
      if (turns.size() > 1) {
        warmUp(side, work);
      }
      for (TrainOnce.HandOff handOff : turns) {
        TrainingPlan plan = plan(work.folder("run-" + outcomes.size()), options.epochs());
        String title = handOff.label() + ", run " + (outcomes.size() + 1) + " of " + turns.size();
        outcomes.add(train(side, handOff, plan, title));
        curves.putIfAbsent(handOff.label(), plan.losses().read());
      }
      progress.step("stopping the cluster");
    }
    progress.clear();
    report(outcomes, curves);
  }

  /** Warms up both hand-offs, so that the first one measured does not pay for loading classes. */
  private void warmUp(SideProcess side, WorkFolder work) throws IOException, InterruptedException {
    for (TrainOnce.HandOff handOff : TrainOnce.HandOff.values()) {
      TrainingPlan plan = plan(work.folder("warm-up-" + handOff), options.epochs());
      TrainOnce.Outcome unused = train(side, handOff, plan, handOff.label() + ", warming up");
    }
  }

  private TrainOnce.Outcome train(
      SideProcess side, TrainOnce.HandOff handOff, TrainingPlan plan, String title)
      throws IOException, InterruptedException {
    progress.step("training, " + title);
    side.call(new Settle());
    Quiet.await();
    try (TrainingProgress shown = new TrainingProgress(progress, plan.losses(), title)) {
      return side.call(new TrainOnce(handOff, plan, RANKS, options.batchRows(), RESTARTS));
    }
  }

  /** The hand-offs of all runs in alternating order; with 0 runs, the feed alone. */
  private List<TrainOnce.HandOff> turns() {
    if (options.runs() == 0) {
      return List.of(TrainOnce.HandOff.FEED);
    }
    List<TrainOnce.HandOff> turns = new ArrayList<>();
    for (int run = 0; run < options.runs(); run++) {
      turns.addAll(Rounds.order(List.of(TrainOnce.HandOff.values()), run));
    }
    return turns;
  }

  private TrainingPlan plan(Path folder, int epochs) {
    return new TrainingPlan(
        new ModelShape(PriceClasses.FEATURE_COUNT, options.hidden(), PriceClasses.CLASSES),
        epochs,
        SEED,
        options.learningRate(),
        BUCKET_BYTES,
        folder.toString(),
        CHECKPOINT_STEPS);
  }

  private void report(
      List<TrainOnce.Outcome> outcomes, Map<String, NavigableMap<Long, Double>> curves)
      throws IOException {
    TrainOnce.Outcome first = outcomes.get(0);
    String subtitle =
        String.format(
            Locale.ROOT,
            "price classes of TPC-H orders at scale %s, %,d rows in %d epochs, layers %s, %s",
            options.scale(),
            first.trainedSteps() * RANKS * options.batchRows() / options.epochs(),
            options.epochs(),
            options.hidden(),
            models.name());
    String table = TrainTable.of(outcomes);
    Files.createDirectories(options.out());
    out.println();
    out.println(subtitle);
    out.println();
    out.print(table);
    out.println();
    out.println(TrainTable.summary(outcomes));
    out.println(
        "Written: "
            + Files.writeString(
                options.out().resolve("loss.svg"), new LossChart(curves, subtitle).toSvg()));
    out.println(
        "Written: "
            + Files.writeString(
                options.out().resolve("train.txt"),
                subtitle + "\n\n" + table + "\n" + TrainTable.summary(outcomes) + "\n"));
  }

  /**
   * The options of {@code weft train}.
   *
   * @param scale of TPC-H
   * @param data folder of the tables; empty for a temporary one
   * @param batchRows rows of a batch of each rank
   * @param runs of each hand-off; 0 for one run of the feed alone
   * @param out folder of the reports
   * @param keep whether the temporary folder stays
   */
  record Options(
      double scale,
      Optional<Path> data,
      List<Integer> hidden,
      int epochs,
      int batchRows,
      double learningRate,
      int runs,
      Path out,
      boolean keep) {
    Options {
      hidden = List.copyOf(hidden);
      require(
          scale > 0 && scale < Double.POSITIVE_INFINITY,
          "--scale has to be more than 0, not " + scale);
      require(
          hidden.stream().allMatch(units -> units > 0),
          "--hidden needs layers of at least one unit each, not " + hidden);
      require(epochs > 0, "--epochs has to be at least 1, not " + epochs);
      require(batchRows > 0, "--batch needs at least one row, not " + batchRows);
      require(
          learningRate > 0 && learningRate < Double.POSITIVE_INFINITY,
          "--rate has to be more than 0, not " + learningRate);
      require(runs >= 0, "--runs has to be 0 or more, not " + runs);
    }

    private static void require(boolean holds, String otherwise) {
      if (!holds) {
        throw new IllegalArgumentException(otherwise);
      }
    }
  }

  /**
   * Shows the progress of a training in another process as a bar, from the losses that it writes.
   * Until this is closed, only its thread "weft-train-progress" may use the progress line.
   */
  static final class TrainingProgress implements AutoCloseable {
    private static final int WIDTH = 30;
    private static final long PERIOD_MILLIS = 250;

    private final Progress progress;
    private final LossLog losses;
    private final String title;
    private final ScheduledExecutorService thread =
        Executors.newSingleThreadScheduledExecutor(
            work -> {
              Thread made = new Thread(work, "weft-train-progress");
              made.setDaemon(true);
              return made;
            });

    TrainingProgress(Progress progress, LossLog losses, String title) {
      this.progress = progress;
      this.losses = losses;
      this.title = title;
      var unused =
          thread.scheduleWithFixedDelay(this::show, 0, PERIOD_MILLIS, TimeUnit.MILLISECONDS);
    }

    private void show() {
      try {
        NavigableMap<Long, Double> soFar = losses.read();
        if (!soFar.isEmpty()) {
          long step = soFar.lastKey() + 1;
          double loss = soFar.get(soFar.lastKey());
          progress.detail(line(title, step, losses.total(), loss));
        }
      } catch (IOException e) {
        progress.detail(title + ": " + e.getMessage());
      }
    }

    static String line(String title, long step, long total, double loss) {
      int done = total == 0 ? 0 : (int) (WIDTH * Math.min(step, total) / total);
      return String.format(
          Locale.ROOT,
          "%s %s%s step %,d of %,d, loss %.3f",
          title,
          "█".repeat(done),
          "░".repeat(WIDTH - done),
          step,
          total,
          loss);
    }

    @Override
    public void close() {
      thread.shutdownNow();
      try {
        if (!thread.awaitTermination(5, TimeUnit.SECONDS)) {
          progress.say("the progress display of " + title + " did not end");
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
