package io.weft.examples.bench.transfer;

import io.weft.examples.side.Cleanup;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;

/** The benchmark of transfers from start to end. Used once, by one thread. */
public final class TransferBench {
  private static final Path SHARED_MEMORY = Path.of("/dev/shm");

  private final TransferBenchOptions options;
  private final Progress progress;
  private final List<RowResult> rows = new ArrayList<>();
  private List<LatencyFigures> latencies = List.of();

  /** Says what it is doing on the progress line. */
  public TransferBench(TransferBenchOptions options, Progress progress) {
    this.options = options;
    this.progress = progress;
  }

  /** Measures everything. */
  public TransferReport run() throws IOException, InterruptedException {
    double load = ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage();
    try (Cleanup cleanup = new Cleanup()) {
      measureBlocks(folders(cleanup));
    }
    measureSpill(Row.SPILL, "measuring a shuffle that spills");
    measureSpill(Row.ENCRYPTED, "measuring a shuffle that spills to encrypted disks");
    if (wants(Row.ABORT)) {
      try (Cleanup cleanup = new Cleanup()) {
        progress.step("measuring how soon a dead peer is known");
        Folders folders = folders(cleanup);
        rows.add(
            new AbortRow(options, folders.work(), folders.memory(), AbortRow.DEADLINE).measure());
      }
    }
    return report(load);
  }

  /** Where processes work, and where their shared memory is; both deleted by the cleanup. */
  private record Folders(Cleanup cleanup, Path work, Path memory) {}

  private static Folders folders(Cleanup cleanup) throws IOException {
    Path memory =
        cleanup
            .add(
                Files.isWritable(SHARED_MEMORY)
                    ? WorkFolder.createIn(SHARED_MEMORY, "weft-bench-")
                    : WorkFolder.create("weft-bench-memory-", false))
            .path();
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
      progress.step("measuring one block again and again");
      latencies = blocks.latency();
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
    String version = TransferBench.class.getPackage().getImplementationVersion();
    return new TransferReport(
        Instant.now().truncatedTo(ChronoUnit.SECONDS).toString(),
        version == null ? "unpackaged" : version,
        System.getProperty("java.version"),
        System.getProperty("os.name") + " " + System.getProperty("os.version"),
        Runtime.getRuntime().availableProcessors(),
        options.runs(),
        load,
        rows,
        latencies);
  }
}
