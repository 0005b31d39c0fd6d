package io.weft.tests.support;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.awaitility.Awaitility;

/**
 * An executor as the operating system sees it.
 *
 * @param id Spark's name for it
 * @param pid its process id
 */
public record ExecutorProcess(String id, long pid) {
  private static final String MAIN = "org.apache.spark.executor.CoarseGrainedExecutorBackend";

  /** Finds the executors that run below a driver or worker, by their ids. */
  public static List<ExecutorProcess> below(ProcessHandle parent) {
    return parent
        .descendants()
        .flatMap(process -> of(process).stream())
        .sorted(Comparator.comparing(ExecutorProcess::id))
        .toList();
  }

  /** Waits until that many executors run. */
  public static List<ExecutorProcess> await(ProcessHandle parent, int count) {
    return Awaitility.await(count + " executors below process " + parent.pid())
        .atMost(Duration.ofMinutes(3))
        .until(() -> below(parent), found -> found.size() == count);
  }

  /** Kills it and waits for its end. */
  public void kill() {
    Signals.kill(pid);
    awaitEnd(Duration.ofMinutes(3));
  }

  /** Waits for its end. */
  public void awaitEnd(Duration limit) {
    Awaitility.await("end of " + this)
        .atMost(limit)
        .pollDelay(Duration.ZERO)
        .pollInterval(Duration.ofMillis(2))
        .until(() -> !isRunning(pid));
  }

  /**
   * A dead process stays in the list until its parent reaps it, which a stopped parent does not.
   */
  private static boolean isRunning(long pid) throws IOException {
    Path file = Path.of("/proc/" + pid + "/stat");
    try {
      String status = Files.readString(file);
      char state = status.charAt(status.lastIndexOf(')') + 2);
      return state != 'Z' && state != 'X';
    } catch (IOException e) {
      // Reading the file of a process that has just ended gives "no such process".
      if (Files.exists(file)) {
        throw e;
      }
      return false;
    }
  }

  private static Optional<ExecutorProcess> of(ProcessHandle process) {
    try {
      List<String> arguments = commandLine(process.pid());
      int id = arguments.indexOf("--executor-id");
      boolean executor = arguments.contains(MAIN) && id >= 0 && id + 1 < arguments.size();
      return executor
          ? Optional.of(new ExecutorProcess(arguments.get(id + 1), process.pid()))
          : Optional.empty();
    } catch (IOException e) {
      return Optional.empty();
    }
  }

  private static List<String> commandLine(long pid) throws IOException {
    String line = Files.readString(Path.of("/proc/" + pid + "/cmdline"));
    try (Stream<String> arguments = Stream.of(line.split("\0"))) {
      return arguments.toList();
    }
  }
}
