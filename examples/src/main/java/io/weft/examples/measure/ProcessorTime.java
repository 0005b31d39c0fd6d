package io.weft.examples.measure;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** How long this process has used processors. Java's own answer counts in ticks of 10 ms. */
public final class ProcessorTime {
  private static final Path THREADS = Path.of("/proc/self/task");

  private ProcessorTime() {}

  /** Nanoseconds of all threads that live, by the scheduler's account where there is one. */
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
