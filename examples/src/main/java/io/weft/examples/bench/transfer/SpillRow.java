package io.weft.examples.bench.transfer;

import io.weft.examples.jobs.ExecutorTotals;
import io.weft.examples.jobs.JobCost;
import io.weft.examples.jobs.Settle;
import io.weft.examples.jobs.ShuffleJob;
import io.weft.examples.measure.Quiet;
import io.weft.examples.measure.Rounds;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideOptions;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Units;
import io.weft.spark.config.WeftSettings;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Measures a shuffle of twice the size of Weft's memory, so that half of it goes to disk, another
 * of twenty times its size, and the same job under Spark's sort shuffle. For comparison it runs
 * with all data in memory. One variant encrypts the disks. For one thread.
 */
final class SpillRow {
  private static final int FULL_ROWS = 5_000_000;
  private static final int TASKS = 16;
  private static final int EXECUTORS = 2;
  private static final long SEGMENT_BYTES = 8 << 20;
  private static final long MIN_BUDGET_BYTES = 1 << 20;

  /** The bytes of a row in the arena: eight numbers, the null bits and the length. */
  private static final int ROW_BYTES = 76;

  private static final List<String> COLUMNS =
      List.of(
          "id * 2654435761 as k",
          "id as a",
          "id % 1000 as b",
          "id * id as c",
          "cast(id as double) as w",
          "id / 3.0D as x",
          "sqrt(id) as y",
          "-id as z");

  private final TransferBench.Options options;
  private final Row row;
  private final Map<String, String> common;
  private final int rows;
  private final ShuffleJob job;

  /** Creates the measurement of {@link Row#SPILL} or {@link Row#ENCRYPTED}. */
  SpillRow(TransferBench.Options options, Row row) {
    this.options = options;
    this.row = row;
    this.common = row == Row.ENCRYPTED ? Map.of(WeftSettings.DISK_ENCRYPTION, "true") : Map.of();
    this.rows = options.part(FULL_ROWS);
    this.job =
        new ShuffleJob(
            new ShuffleJob.Source.Computed(rows, TASKS, COLUMNS),
            new ShuffleJob.Exchange.Hash(TASKS, "k"));
  }

  TransferReport.RowResult measure(Cleanup cleanup, WorkFolder work)
      throws IOException, InterruptedException {
    long data = (long) rows * ROW_BYTES;
    SideLauncher launcher = SideLauncher.create(work);
    SideProcess spark = cleanup.add(launcher.start(SideOptions.spark(common)));
    SideProcess weft = weft(cleanup, launcher, "half", data / EXECUTORS / 2);
    SideProcess inMemory = weft(cleanup, launcher, "memory", 2 * data);
    SideProcess twentieth = weft(cleanup, launcher, "twentieth", data / EXECUTORS / 20);
    List<SideProcess> all = List.of(weft, inMemory, twentieth, spark);
    for (SideProcess side : all) {
      side.awaitReady();
    }
    requireEqual(all);
    ExecutorTotals before = weft.call(new ExecutorTotals.Collect());
    List<Rounds.SideFigures> sides =
        new Rounds(1, options.runs())
            .measure(
                List.of(
                    new Rounds.Contestant("Weft/shm", () -> run(weft)),
                    new Rounds.Contestant("Spark", () -> run(spark)),
                    new Rounds.Contestant("Weft/shm, nothing on disk", () -> run(inMemory)),
                    new Rounds.Contestant("Weft/shm, a twentieth", () -> run(twentieth))));
    long spilled = weft.call(new ExecutorTotals.Collect()).since(before).spilledBytes();
    double slowest = Math.max(sides.get(0).seconds().median(), sides.get(3).seconds().median());
    double factor = sides.get(1).seconds().median() / slowest;
    return new TransferReport.RowResult(
        row.id(),
        "a shuffle of %s with memory for half or a twentieth of it; with half, %s of a run on disk%s"
            .formatted(
                Units.bytes(data),
                Units.bytes(spilled / (1 + options.runs())),
                row == Row.ENCRYPTED ? ", all sides with spark.io.encryption.enabled" : ""),
        data,
        sides,
        TransferReport.Goal.atLeast(
            "no slower than Spark's sort shuffle with either", factor, "×", 1));
  }

  private SideProcess weft(Cleanup cleanup, SideLauncher launcher, String where, long budget)
      throws IOException {
    Map<String, String> settings = new TreeMap<>(common);
    settings.put("spark.weft.memory.size", Long.toString(Math.max(MIN_BUDGET_BYTES, budget)));
    settings.put("spark.weft.memory.segmentSize", Long.toString(SEGMENT_BYTES));
    return cleanup.add(launcher.start(SideOptions.weft("shm", settings).renamed("weft-" + where)));
  }

  private Rounds.Cost run(SideProcess side) throws IOException, InterruptedException {
    side.call(new Settle());
    Quiet.await();
    double before = side.executorCpuSeconds();
    JobCost cost = side.call(job);
    return new Rounds.Cost(cost.seconds(), side.executorCpuSeconds() - before);
  }

  private void requireEqual(List<SideProcess> sides) throws IOException, InterruptedException {
    Set<String> results = new TreeSet<>();
    for (SideProcess side : sides) {
      results.add(side.call(new ShuffleJob.Fingerprint(job)));
    }
    if (results.size() != 1) {
      throw new IOException("the sides came to different results: " + results);
    }
  }
}
