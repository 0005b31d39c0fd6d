package io.weft.tests.support;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.regex.Pattern;

/** The errors in the logs of executors of local clusters, for the messages of failed tests. */
final class ExecutorErrors {
  private static final Pattern ERROR =
      Pattern.compile("ERROR|FATAL|Exception|Error:|fatal error|Error occurred");

  private static final int MAX_LOGS = 8;
  private static final int MAX_LINES = 4;
  private static final int MAX_LENGTH = 300;

  private ExecutorErrors() {}

  /**
   * Returns the first errors of the executors whose logs changed since a time, those of the newest
   * logs; both forks of a build share the folder of logs. A log that cannot be read is left out.
   */
  static List<String> since(Instant time) {
    List<String> found = new ArrayList<>();
    Folders.tree(SparkHome.shared().folder().resolve("work")).stream()
        .filter(file -> file.endsWith("stderr") && changed(file).isAfter(time))
        .sorted(Comparator.comparing(ExecutorErrors::changed).reversed())
        .map(ExecutorErrors::errors)
        .filter(lines -> !lines.isEmpty())
        .limit(MAX_LOGS)
        .forEach(found::addAll);
    return found;
  }

  private static Instant changed(Path file) {
    try {
      return Files.getLastModifiedTime(file).toInstant();
    } catch (IOException e) {
      return Instant.MIN;
    }
  }

  private static List<String> errors(Path log) {
    String executor =
        log.getParent().getParent().getFileName() + "/" + log.getParent().getFileName();
    try {
      return new String(Files.readAllBytes(log), StandardCharsets.UTF_8)
          .lines()
          .filter(line -> ERROR.matcher(line).find())
          .limit(MAX_LINES)
          .map(line -> executor + ": " + line.substring(0, Math.min(line.length(), MAX_LENGTH)))
          .toList();
    } catch (IOException e) {
      return List.of();
    }
  }
}
