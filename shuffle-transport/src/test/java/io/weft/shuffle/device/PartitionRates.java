package io.weft.shuffle.device;

import io.weft.collectives.DataType;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaMemory;
import io.weft.memory.Memory;
import io.weft.tensor.TensorType;
import io.weft.testgpus.Goal;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Random;

/**
 * Measures how fast the first GPU partitions and packs tables, compared to a plain copy of the same
 * bytes on the device. Prints a table and writes it as JSON. Run by {@code tests/gpu/run}; never a
 * test.
 */
final class PartitionRates {
  private static final int RUNS = 7;
  private static final int PARTITIONS = 200;
  private static final int PIECE = 16 << 20;
  private static final long BUDGET = TableGpu.hasSpeed() ? 24L << 30 : 1L << 30;
  private static final int LONG_ROWS = TableGpu.hasSpeed() ? 1 << 26 : 1 << 14;
  private static final int MIXED_ROWS = TableGpu.hasSpeed() ? 1 << 21 : 1 << 12;

  private final TableGpu gpu;
  private final DevicePartitioner partitioner;
  private final List<String> json = new ArrayList<>();

  private PartitionRates(TableGpu gpu, DevicePartitioner partitioner) {
    this.gpu = gpu;
    this.partitioner = partitioner;
  }

  /**
   * Runs the measurements.
   *
   * @param args the JSON file to write
   */
  public static void main(String[] args) throws IOException {
    try (TableGpu gpu = new TableGpu(BUDGET);
        DevicePartitioner partitioner = DevicePartitioner.open(gpu.memory, gpu.pinned)) {
      PartitionRates rates = new PartitionRates(gpu, partitioner);
      try (DeviceTable table = rates.longs()) {
        rates.measure("8 longs", table, new int[] {0});
      }
      gpu.memory.trim();
      try (DeviceTable table = rates.mixed()) {
        rates.measure("mixed", table, new int[] {0, 4});
      }
      gpu.lane.drain(TableGpu.deadline());
      Files.writeString(Path.of(args[0]), "[" + String.join(",\n  ", rates.json) + "]\n");
    } catch (UnavailableLibraryException | CudaException e) {
      System.out.println("No GPU can be used: " + e.getMessage());
    }
  }

  /**
   * A table of longs. All bytes are valid longs, so only a piece is generated, then copied on the
   * device.
   */
  private DeviceTable longs() {
    TableLayout layout =
        TableLayout.fixed(
            Collections.nCopies(8, TableColumn.of(ColumnKind.LONG, false)), LONG_ROWS);
    CudaMemory memory = gpu.memory.take(layout.bytes());
    int piece = (int) Math.min(PIECE, layout.bytes());
    try (CudaMemory here = gpu.pinned.take(piece)) {
      byte[] any = new byte[piece];
      new Random(1).nextBytes(any);
      Memory.copyFrom(any, Memory.BYTE_ARRAY, here.address(), piece);
      gpu.lane
          .submit("any longs", () -> fill(memory.address(), here.address(), piece, layout.bytes()))
          .await(TableGpu.deadline());
    }
    return DeviceTable.of(memory, layout, HostEvent.completed("longs"));
  }

  private void fill(long to, long from, long piece, long bytes) {
    gpu.lane.stream().copyToDevice(to, from, piece);
    for (long at = piece; at < bytes; at += piece) {
      gpu.lane.stream().copyOnDevice(to + at, to, Math.min(piece, bytes - at));
    }
  }

  private DeviceTable mixed() {
    List<TableColumn> columns =
        List.of(
            TableColumn.of(ColumnKind.INT, true),
            TableColumn.of(ColumnKind.LONG, true),
            TableColumn.of(ColumnKind.DOUBLE, false),
            TableColumn.of(ColumnKind.DECIMAL128, false),
            TableColumn.of(ColumnKind.STRING, true),
            TableColumn.tensors(TensorType.of(DataType.FLOAT32, 16), false));
    try (HostTable table = new RandomTable(1, 1, 40).fill(gpu.pinned, columns, MIXED_ROWS)) {
      DeviceTable there = table.upload(gpu.lane, gpu.memory);
      there.ready().await(TableGpu.deadline());
      return there;
    }
  }

  private void measure(String what, DeviceTable table, int[] keys) {
    double[] copies = new double[RUNS];
    double[] counts = new double[RUNS];
    double[] packs = new double[RUNS];
    for (int run = 0; run < RUNS; run++) {
      copies[run] = copy(table);
      try (PendingPartitions pending = start(table, keys, counts, run)) {
        long start = System.nanoTime();
        try (PartitionedTable made = pending.pack(TableGpu.deadline())) {
          made.ready().await(TableGpu.deadline());
          packs[run] = seconds(start);
        }
      }
    }
    report(what, table, median(copies), median(counts), median(packs));
  }

  private PendingPartitions start(DeviceTable table, int[] keys, double[] counts, int run) {
    long start = System.nanoTime();
    PendingPartitions pending = partitioner.byHash(gpu.lane, table, keys, PARTITIONS);
    pending.counted().await(TableGpu.deadline());
    counts[run] = seconds(start);
    return pending;
  }

  private double copy(DeviceTable table) {
    try (CudaMemory there = gpu.memory.take(table.bytes())) {
      long start = System.nanoTime();
      Event copied =
          gpu.lane.submit(
              "copy",
              () ->
                  gpu.lane.stream().copyOnDevice(there.address(), table.address(), table.bytes()));
      copied.await(TableGpu.deadline());
      return seconds(start);
    }
  }

  private static double seconds(long start) {
    return (System.nanoTime() - start) / 1e9;
  }

  private static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }

  private void report(String what, DeviceTable table, double copy, double count, double pack) {
    double gigabytes = table.bytes() / 1e9;
    System.out.printf(
        Locale.ROOT,
        "%-8s %9d rows %7.3f GB into %d: count %.3f ms, pack %.3f ms, copy %.3f ms (%.0f GB/s);"
            + " count and pack at %.0f %% of the copy, pack at %.0f %%%n",
        what,
        table.rows(),
        gigabytes,
        PARTITIONS,
        count * 1e3,
        pack * 1e3,
        copy * 1e3,
        gigabytes / copy,
        100 * copy / (count + pack),
        100 * copy / pack);
    Goal goal =
        Goal.least(
            "partition and pack " + what + ", in % of the rate of a plain copy on the device",
            100 * copy / (count + pack),
            50,
            "%");
    System.out.println(goal.line());
    json.add(
        String.format(
            Locale.ROOT,
            "{\"table\": \"%s\", \"rows\": %d, \"bytes\": %d, \"partitions\": %d,"
                + " \"countSeconds\": %.6f, \"packSeconds\": %.6f, \"copySeconds\": %.6f,"
                + " \"shareOfCopy\": %.3f, \"goals\": [%s]}",
            what,
            table.rows(),
            table.bytes(),
            PARTITIONS,
            count,
            pack,
            copy,
            copy / (count + pack),
            goal.json()));
  }
}
