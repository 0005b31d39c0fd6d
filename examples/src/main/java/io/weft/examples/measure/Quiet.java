package io.weft.examples.measure;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/**
 * Waits until this machine is idle. Leftovers of one side, such as compilation, garbage and files
 * to delete or write back, must not slow down the side that is measured next. Thread-safe.
 */
public final class Quiet {
  private static final Path COUNTERS = Path.of("/proc/stat");
  private static final long SAMPLE_NANOS = TimeUnit.MILLISECONDS.toNanos(200);
  private static final long DEADLINE_NANOS = TimeUnit.SECONDS.toNanos(5);
  private static final double BUSY = 0.15;

  /** Fields of the first line of the counters, after its name: idle, and waiting for a disk. */
  private static final int IDLE = 3;

  private static final int WAITING = 4;

  private Quiet() {}

  /** Ticks of all processors since the machine started. */
  private record Ticks(long idle, long all) {
    static Ticks now() throws IOException {
      try (Stream<String> lines = Files.lines(COUNTERS)) {
        String[] fields = lines.findFirst().orElseThrow().trim().split("\\s+");
        long[] ticks = Arrays.stream(fields).skip(1).mapToLong(Long::parseLong).toArray();
        return new Ticks(ticks[IDLE] + ticks[WAITING], Arrays.stream(ticks).sum());
      }
    }

    double busySince(Ticks before) {
      long passed = all - before.all;
      return passed == 0 ? 0 : 1 - (double) (idle - before.idle) / passed;
    }
  }

  /**
   * Returns when the processors were busy for at most 15 % of a fifth of a second, or after five
   * seconds. Returns at once on systems other than Linux, which lack the counters.
   */
  public static void await() throws IOException {
    if (!Files.isReadable(COUNTERS)) {
      return;
    }
    long deadline = System.nanoTime() + DEADLINE_NANOS;
    double busy = 1;
    while (busy > BUSY && System.nanoTime() < deadline) {
      Ticks before = Ticks.now();
      LockSupport.parkNanos(SAMPLE_NANOS);
      busy = Ticks.now().busySince(before);
    }
  }
}
