package io.weft.transfers;

import io.weft.device.Deadline;
import io.weft.device.Lane;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.DeviceTiers;
import io.weft.device.cuda.TieredMemory;
import io.weft.memory.ArenaOptions;
import io.weft.memory.SharedArena;
import io.weft.testgpus.Goal;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * The rate at which memory of the first GPU is spilled to pinned memory and comes back, compared
 * with plain copies of the same bytes. Prints a table and writes it as JSON. Run by {@code
 * tests/gpu/run}; never a test.
 */
final class SpillRates implements AutoCloseable {
  private static final Duration TIMEOUT = Duration.ofMinutes(1);
  private static final int RUNS = 7;
  private static final int PIECES = 16;
  private static final long PIECE = TestGpus.haveSpeed() ? 64L << 20 : 1L << 20;
  private static final long BUDGET = 4 * PIECES * PIECE;

  private final DeviceTiers tiers;
  private final CudaLane lane;
  private final CudaMemoryPool pinned;

  private SpillRates(CudaDevice device, SharedArena arena) {
    this.tiers = DeviceTiers.open(device, "spill", BUDGET, BUDGET, arena, TIMEOUT);
    this.lane = CudaLane.open(device, "copies", TIMEOUT, Lane.Priority.NORMAL);
    this.pinned = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, BUDGET);
  }

  /**
   * Runs the measurement.
   *
   * @param args the JSON file to write
   */
  public static void main(String[] args) throws IOException {
    Path folder = Files.createTempDirectory("weft-rates");
    try (CudaDevice device = TestGpus.cuda().open(0);
        SharedArena arena =
            SharedArena.open(new ArenaOptions(folder, List.of(), 4 << 20, 64 << 20, 0, 0));
        SpillRates rates = new SpillRates(device, arena)) {
      Files.writeString(Path.of(args[0]), rates.measure());
    } catch (UnavailableLibraryException | CudaException e) {
      System.out.println("No GPU can be used: " + e.getMessage());
    }
  }

  private String measure() {
    List<TieredMemory> pieces = new ArrayList<>();
    for (int i = 0; i < PIECES; i++) {
      pieces.add(tiers.allocate(PIECE));
    }
    double[][] seconds = new double[4][RUNS];
    try (CudaMemory here = pinned.take(PIECE);
        CudaMemory there = tiers.memory().take(PIECE)) {
      spillAndBack(pieces);
      for (int run = 0; run < RUNS; run++) {
        double[] moved = spillAndBack(pieces);
        seconds[0][run] = moved[0];
        seconds[1][run] = moved[1];
        seconds[2][run] =
            copies(() -> lane.stream().copyToHost(here.address(), there.address(), PIECE));
        seconds[3][run] =
            copies(() -> lane.stream().copyToDevice(there.address(), here.address(), PIECE));
      }
    }
    pieces.forEach(TieredMemory::close);
    String rates =
        report("spill", median(seconds[0]), median(seconds[2]))
            + report("back", median(seconds[1]), median(seconds[3]));
    Goal goal =
        Goal.least(
            "spill to pinned memory, in % of the rate of plain pinned copies",
            100 * median(seconds[2]) / median(seconds[0]), 80, "%");
    System.out.println(goal.line());
    return rates + "\"bytes\": " + PIECES * PIECE + ", \"goals\": [" + goal.json() + "]}\n";
  }

  /** Seconds to spill and to come back. */
  private double[] spillAndBack(List<TieredMemory> pieces) {
    long start = System.nanoTime();
    long moved = tiers.spill(PIECES * PIECE);
    double away = seconds(start);
    if (moved != PIECES * PIECE) {
      throw new IllegalStateException(moved + " bytes were spilled");
    }
    start = System.nanoTime();
    pieces.forEach(piece -> piece.lease().close());
    return new double[] {away, seconds(start)};
  }

  private double copies(Runnable copy) {
    long start = System.nanoTime();
    lane.submit(
            "copies",
            () -> {
              for (int i = 0; i < PIECES; i++) {
                copy.run();
              }
            })
        .await(Deadline.after(TIMEOUT));
    return seconds(start);
  }

  private static double seconds(long start) {
    return (System.nanoTime() - start) / 1e9;
  }

  private static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }

  private static String report(String what, double moved, double copied) {
    System.out.printf(
        Locale.ROOT,
        "%-6s %,12d bytes: %9.3f ms, plain pinned copies %9.3f ms (%.1f GB/s): %.0f %% of their"
            + " rate%n",
        what,
        PIECES * PIECE,
        moved * 1e3,
        copied * 1e3,
        PIECES * PIECE / copied / 1e9,
        100 * copied / moved);
    return String.format(
        Locale.ROOT,
        "%s\"%sSeconds\": %.6f, \"%sCopySeconds\": %.6f, ",
        what.equals("spill") ? "{" : "",
        what,
        moved,
        what,
        copied);
  }

  @Override
  public void close() {
    tiers.close();
    lane.close();
    pinned.close();
  }
}
