package io.weft.examples.ranks;

import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideOptions;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Parses and runs {@code weft ranks}. */
@Command(
    name = "ranks",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    description = {
      "Runs two programs on the ranks of a barrier stage, in two executors: a halo exchange in"
          + " symmetric memory, and a sort by sample and ragged all-to-all.",
      "Compares each result with Spark's own."
    })
public final class RanksCommand implements Callable<Integer> {
  private static final int RANKS = 2;

  @Option(
      names = "--cells",
      defaultValue = "20000",
      paramLabel = "N",
      description = "Cells of the halo exchange. Default: ${DEFAULT-VALUE}")
  private int cells;

  @Option(
      names = "--steps",
      defaultValue = "5",
      paramLabel = "N",
      description = "Steps of the halo exchange. Default: ${DEFAULT-VALUE}")
  private int steps;

  @Option(
      names = "--rows",
      defaultValue = "500000",
      paramLabel = "N",
      description = "Rows to sort. Default: ${DEFAULT-VALUE}")
  private long rows;

  @Override
  public Integer call() throws Exception {
    requirePositive("--cells", cells);
    requirePositive("--steps", steps);
    requirePositive("--rows", rows);
    Progress progress = Progress.toErrors();
    RanksCheck.Outcomes outcomes;
    try (Cleanup cleanup = new Cleanup()) {
      progress.step("starting a cluster of two executors");
      WorkFolder work = cleanup.add(WorkFolder.create("weft-ranks-", false));
      SideProcess side =
          cleanup.add(SideLauncher.create(work).start(SideOptions.weft("auto", Map.of())));
      progress.step("running the programs");
      outcomes = side.call(RanksCheck.of(RANKS, cells, steps, rows, Long.MAX_VALUE));
      progress.step("stopping the cluster");
    }
    progress.clear();
    boolean equal = true;
    for (RanksCheck.Outcome each : outcomes.programs()) {
      equal &= each.equal();
      System.out.printf(
          Locale.ROOT,
          "%s: %,d numbers, %s; %.2f s on %d ranks, %.2f s by Spark%n",
          each.program(),
          each.elements(),
          each.equal() ? "equal to Spark's" : "DIFFERENT from Spark's",
          each.seconds(),
          RANKS,
          each.sparkSeconds());
    }
    return equal ? 0 : 1;
  }

  private static void requirePositive(String option, long value) {
    if (value < 1) {
      throw new IllegalArgumentException(option + " has to be at least 1, not " + value);
    }
  }
}
