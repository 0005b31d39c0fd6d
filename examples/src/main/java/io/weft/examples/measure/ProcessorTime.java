package io.weft.examples.measure;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** The CPU time of this process. Java's own value has a resolution of only 10 ms. */
public final class ProcessorTime {
  private static final Path THREADS = Path.of("/proc/self/task");

  private ProcessorTime() {}

  /** Returns the nanoseconds of all live threads, from the scheduler's statistics if available. */
  public static long nanos() {
    long sum = 0;
    try (DirectoryStream<Path> threads = Files.newDirectoryStream(THREADS)) {
      for (Path thread : threads) {
        sum += Long.parseLong(Files.readString(thread.resolve("schedstat")).split(" ", -1)[0]);
      }
      return sum;
    } catch (IOException e) {
      return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getProcessCpuTime();
    }
  }
}
