package io.weft.examples.train;

import io.weft.examples.jobs.OpenTables;
import io.weft.examples.jobs.Settle;
import io.weft.examples.measure.Quiet;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.Sides;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import io.weft.examples.tpch.TableWriter;
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

/** The example from start to end. Used once, by one thread. */
final class TrainRun {
  private static final int RANKS = 2;
  private static final int RESTARTS = 2;
  private static final int CHECKPOINT_STEPS = 100;
  private static final long SEED = 17;
  private static final long BUCKET_BYTES = 16 << 10;

  private final TrainOptions options;
  private final ModelProvider models;
  private final Progress progress;
  private final PrintStream out;

  TrainRun(TrainOptions options, ModelProvider models, Progress progress, PrintStream out) {
    this.options = options;
    this.models = models;
    this.progress = progress;
    this.out = out;
  }

  void run() throws IOException, InterruptedException {
    List<TrainOutcome> outcomes = new ArrayList<>();
    Map<String, NavigableMap<Long, Double>> curves = new LinkedHashMap<>();
    progress.step("unpacking " + models.name());
    models.prepare();
    try (Cleanup cleanup = new Cleanup()) {
      WorkFolder work = cleanup.add(WorkFolder.create("weft-train-", options.keep()));
      SideLauncher launcher = SideLauncher.create(work);
      Path tables = tables(launcher, work, cleanup);
      progress.step("starting a cluster of two executors");
      SideProcess side = cleanup.add(launcher.start(Sides.weft("auto", Map.of())));
      side.call(new OpenTables(tables.toString(), TpchTables.names()));
      List<HandOff> turns = turns();
      if (turns.size() > 1) {
        warmUp(side, work);
      }
      for (HandOff handOff : turns) {
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

  /** What is loaded, compiled and first touched once must not be paid by whoever comes first. */
  private void warmUp(SideProcess side, WorkFolder work) throws IOException, InterruptedException {
    for (HandOff handOff : HandOff.values()) {
      TrainingPlan plan = plan(work.folder("warm-up-" + handOff), options.epochs());
      TrainOutcome unused = train(side, handOff, plan, handOff.label() + ", warming up");
    }
  }

  private TrainOutcome train(SideProcess side, HandOff handOff, TrainingPlan plan, String title)
      throws IOException, InterruptedException {
    progress.step("training, " + title);
    side.call(new Settle());
    Quiet.await();
    try (TrainingProgress shown = new TrainingProgress(progress, plan.losses(), title)) {
      return side.call(new TrainOnce(handOff, plan, RANKS, options.batchRows(), RESTARTS));
    }
  }

  private Path tables(SideLauncher launcher, WorkFolder work, Cleanup cleanup)
      throws IOException, InterruptedException {
    Path folder =
        options.data().isPresent() ? options.data().get().toAbsolutePath() : work.folder("tpch");
    if (TpchTables.complete(folder, options.scale())) {
      progress.step("using the tables in " + folder);
    } else {
      new TableWriter(launcher, cleanup, progress).write(folder, options.scale());
    }
    return folder;
  }

  /** Each hand-off in turn, the other one first in every second round. */
  private List<HandOff> turns() {
    if (options.runs() == 0) {
      return List.of(HandOff.FEED);
    }
    List<HandOff> turns = new ArrayList<>();
    for (int run = 0; run < options.runs(); run++) {
      turns.add(run % 2 == 0 ? HandOff.FEED : HandOff.PARQUET);
      turns.add(run % 2 == 0 ? HandOff.PARQUET : HandOff.FEED);
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

  private void report(List<TrainOutcome> outcomes, Map<String, NavigableMap<Long, Double>> curves)
      throws IOException {
    TrainOutcome first = outcomes.get(0);
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
}
