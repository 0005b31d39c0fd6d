package io.weft.examples.side;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * The logs of a side, to quote when it fails.
 *
 * @param driver the driver's log
 * @param executors the folder that holds a folder for each application, and in it for each executor
 */
record SideLogs(Path driver, Path executors) {
  private static final int LINES = 30;
  private static final int DEPTH_OF_EXECUTORS = 3;
  private static final String EXECUTOR_LOG = "stderr";

  /** The end of the driver's log and of the log of the executor that wrote last. */
  String tails() {
    StringBuilder text = new StringBuilder("the end of the driver's log:\n").append(tail(driver));
    lastExecutor()
        .ifPresent(log -> text.append("\nthe end of an executor's log:\n").append(tail(log)));
    return text.toString();
  }

  private Optional<Path> lastExecutor() {
    if (!Files.isDirectory(executors)) {
      return Optional.empty();
    }
    try (Stream<Path> files = Files.walk(executors, DEPTH_OF_EXECUTORS)) {
      return files
          .filter(file -> file.endsWith(EXECUTOR_LOG))
          .max(Comparator.comparing(SideLogs::modified));
    } catch (IOException e) {
      return Optional.empty();
    }
  }

  private static FileTime modified(Path file) {
    try {
      return Files.getLastModifiedTime(file);
    } catch (IOException goneMeanwhile) {
      return FileTime.fromMillis(0);
    }
  }

  private static String tail(Path log) {
    try {
      // The executor's command line is longer than anybody wants to read.
      List<String> lines =
          Files.readAllLines(log).stream()
              .filter(line -> !line.startsWith("Spark Executor Command"))
              .toList();
      return String.join("\n", lines.subList(Math.max(0, lines.size() - LINES), lines.size()));
    } catch (IOException e) {
      return "(cannot read " + log + ": " + e + ")";
    }
  }
}
