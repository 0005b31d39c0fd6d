package io.weft.examples.bench.transfer;

import io.weft.examples.measure.Environment;
import io.weft.examples.measure.Rounds;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** Runs the whole benchmark of transfers. For one use and one thread. */
final class TransferBench {
  private final Options options;
  private final Progress progress;
  private final List<TransferReport.RowResult> rows = new ArrayList<>();
  private List<TransferReport.LatencyFigures> latencies = List.of();

  /** Shows its steps on the progress line. */
  TransferBench(Options options, Progress progress) {
    this.options = options;
    this.progress = progress;
  }

  /** Measures everything. */
  TransferReport run() throws IOException, InterruptedException {
    double load = ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage();
    try (Cleanup cleanup = new Cleanup()) {
      measureBlocks(folders(cleanup));
    }
    if (wants(Row.NETWORK)) {
      try (Cleanup cleanup = new Cleanup()) {
        measureNetwork(folders(cleanup));
      }
    }
    measureSpill(Row.SPILL, "measuring a shuffle that spills");
    measureSpill(Row.ENCRYPTED, "measuring a shuffle that spills to encrypted disks");
    if (wants(Row.ABORT)) {
      try (Cleanup cleanup = new Cleanup()) {
        progress.step("measuring how soon the loss of a peer is detected");
        Folders folders = folders(cleanup);
        rows.add(
            new AbortRow(options, folders.work(), folders.memory(), AbortRow.DEADLINE).measure());
      }
    }
    return report(load);
  }

  /** The folders of processes and of their shared memory. The cleanup deletes both. */
  private record Folders(Cleanup cleanup, Path work, Path memory) {}

  private static Folders folders(Cleanup cleanup) throws IOException {
    Path memory = cleanup.add(WorkFolder.createInSharedMemory("weft-bench-")).path();
    return new Folders(cleanup, work(cleanup).path(), memory);
  }

  private static WorkFolder work(Cleanup cleanup) throws IOException {
    return cleanup.add(WorkFolder.create("weft-bench-", false));
  }

  private void measureBlocks(Folders folders) throws IOException, InterruptedException {
    if (!wants(Row.STREAM) && !wants(Row.SMALL) && !wants(Row.LATENCY)) {
      return;
    }
    progress.step("starting executors");
    BlockRows blocks = new BlockRows(options, folders.cleanup(), folders.work(), folders.memory());
    if (wants(Row.STREAM)) {
      progress.step("measuring a stream of blocks");
      rows.add(blocks.stream());
    }
    if (wants(Row.SMALL)) {
      progress.step("measuring small blocks");
      rows.add(blocks.small());
    }
    if (wants(Row.LATENCY)) {
      progress.step("measuring the latency of one block");
      latencies = blocks.latency();
    }
  }

  private void measureNetwork(Folders folders) throws IOException, InterruptedException {
    progress.step("starting executors on two hosts");
    NetworkRows network =
        new NetworkRows(options, folders.cleanup(), folders.work(), folders.memory());
    for (int megabits : List.of(1000, 10_000)) {
      progress.step("measuring a network of " + megabits + " Mbit/s");
      rows.add(network.at(megabits));
    }
  }

  private void measureSpill(Row row, String step) throws IOException, InterruptedException {
    if (wants(row)) {
      try (Cleanup cleanup = new Cleanup()) {
        progress.step(step);
        rows.add(new SpillRow(options, row).measure(cleanup, work(cleanup)));
      }
    }
  }

  private boolean wants(Row row) {
    return options.rows().contains(row);
  }

  private TransferReport report(double load) {
    Environment environment = Environment.current();
    return new TransferReport(
        environment.when(),
        environment.weftVersion(),
        environment.javaVersion(),
        environment.system(),
        environment.cores(),
        options.runs(),
        load,
        rows,
        latencies);
  }

  /**
   * The choice of what to measure.
   *
   * @param rows to measure
   * @param runs that count
   * @param factor of the sizes of a full run; more than 0, at most 1
   */
  record Options(Set<Row> rows, int runs, double factor) {
    Options {
      rows = Set.copyOf(rows);
      Rounds.requireRuns(runs);
      if (!(factor > 0 && factor <= 1)) {
        throw new IllegalArgumentException("the factor has to be above 0 and at most 1: " + factor);
      }
    }

    /** Scales a number of a full run; returns at least 1. */
    int part(int full) {
      return (int) Math.max(1, Math.round(full * factor));
    }
  }
}
