package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** A process that locks a lease as a reader would, and waits to be killed. */
final class LeaseHolder {
  private LeaseHolder() {}

  /** Starts the process and waits until it has the lock. */
  static Process start(Path lease) throws IOException {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx32m",
                "-cp",
                System.getProperty("java.class.path"),
                LeaseHolder.class.getName(),
                lease.toString())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    BufferedReader out =
        new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.US_ASCII));
    assertThat(out.readLine()).isEqualTo("locked");
    return process;
  }

  /** Locks the file and waits for the end of its input. */
  public static void main(String[] arguments) throws IOException {
    try (FileChannel file = FileChannel.open(Path.of(arguments[0]), StandardOpenOption.READ)) {
      var lock = file.lock(0, Long.MAX_VALUE, true);
      System.out.println(lock.isShared() ? "locked" : "locked, but not shared");
      int unused = System.in.read();
    }
  }
}
