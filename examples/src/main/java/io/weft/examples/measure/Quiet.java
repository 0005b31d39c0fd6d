package io.weft.examples.measure;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/**
 * Waits until this machine is idle. What one side leaves behind, such as compiling of code, garbage
 * and files to be deleted or written back, must not be paid by the side that is measured next.
 * Thread-safe.
 */
public final class Quiet {
  private static final Path COUNTERS = Path.of("/proc/stat");
  private static final long SAMPLE_NANOS = TimeUnit.MILLISECONDS.toNanos(200);
  private static final long DEADLINE_NANOS = TimeUnit.SECONDS.toNanos(5);
  private static final double BUSY = 0.15;

  /** Fields of the counters' first line behind its name: time idle, and waiting for a disk. */
  private static final int IDLE = 3;

  private static final int WAITING = 4;

  private Quiet() {}

  /** Ticks of all processors since the start of the machine. */
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
   * Returns once the processors were idle for a fifth of a second, but for a seventh of their time
   * at most, or after five seconds. Returns at once where the system does not count (only Linux
   * does it so).
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
