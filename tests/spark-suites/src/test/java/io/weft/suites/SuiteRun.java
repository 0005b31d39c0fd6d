package io.weft.suites;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Runs one suite under ScalaTest in its own JVM, in a Spark home whose executors find this JVM's
 * class path. All its output goes below {@code target/suites}.
 */
final class SuiteRun {
  private static final Duration LIMIT = Duration.ofMinutes(120);
  private static final int SHOWN_LINES = 100;

  /** The jar of Spark's suites of SQL, and the folder in which they look for its files. */
  private static final Pattern SQL_TESTS = Pattern.compile("[^:]*/spark-sql_[^/:]*-tests\\.jar");

  private static final Path SQL_RESOURCES = Path.of("sql/core/src/test/resources");

  private static final Path TARGET =
      Path.of(System.getProperty("weft.rootFolder"), "tests/spark-suites/target");
  private static final Path UNPACKED = TARGET.resolve("spark-sql-tests");

  private final Suite suite;
  private final Path folder;

  SuiteRun(Suite suite) {
    this.suite = suite;
    this.folder = TARGET.resolve("suites").resolve(suite.name());
  }

  /**
   * Runs the suite to its end.
   *
   * @param part of the names of the tests to run; empty for all
   * @return the outcomes in ScalaTest's order
   */
  List<SuiteReport.Outcome> run(String part) throws IOException, InterruptedException {
    delete(folder);
    Files.createDirectories(folder.resolve("jars"));
    Files.createDirectories(folder.resolve("report"));
    Files.createDirectories(folder.resolve("tmp"));
    Files.writeString(folder.resolve("RELEASE"), "Spark for its own suites\n");
    Files.createDirectories(folder.resolve(SQL_RESOURCES).getParent());
    Files.createSymbolicLink(folder.resolve(SQL_RESOURCES), UNPACKED);
    Process process = start(part);
    try {
      if (!process.waitFor(LIMIT.toSeconds(), TimeUnit.SECONDS)) {
        throw new AssertionError(suite + " still runs after " + LIMIT + "\n" + tail());
      }
    } finally {
      process.descendants().forEach(ProcessHandle::destroyForcibly);
      process.destroyForcibly();
    }
    List<SuiteReport.Outcome> outcomes = SuiteReport.read(folder.resolve("report"));
    boolean failed = outcomes.stream().anyMatch(outcome -> outcome.failure().isPresent());
    if (process.exitValue() != 0 && !failed) {
      throw new AssertionError(
          suite + " was interrupted, status " + process.exitValue() + "\n" + tail());
    }
    return outcomes;
  }

  private Process start(String part) throws IOException {
    ProcessBuilder builder = new ProcessBuilder(command(part)).directory(folder.toFile());
    builder.redirectErrorStream(true).redirectOutput(output().toFile());
    builder.environment().put("SPARK_HOME", folder.toString());
    builder.environment().put("SPARK_SCALA_VERSION", System.getProperty("scala.binary.version"));
    builder.environment().put("SPARK_DIST_CLASSPATH", classPath());
    builder.environment().put("SPARK_LOCAL_IP", "127.0.0.1");
    return builder.start();
  }

  private List<String> command(String part) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of(System.getProperty("weft.jvmOpens").split(" ")));
    command.addAll(List.of("-ea", "-Xmx3g", "-Xss4m"));
    command.add("-Djava.io.tmpdir=" + folder.resolve("tmp"));
    command.add("-Dspark.test.home=" + folder);
    command.addAll(suite.properties());
    command.addAll(List.of("-cp", classPath(), "org.scalatest.tools.Runner"));
    command.addAll(suite.arguments(part));
    command.addAll(List.of("-oW", "-u", folder.resolve("report").toString()));
    return command;
  }

  private static String classPath() {
    return Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
        .map(entry -> SQL_TESTS.matcher(entry).matches() ? UNPACKED.toString() : entry)
        .distinct()
        .collect(Collectors.joining(File.pathSeparator));
  }

  private Path output() {
    return folder.resolve("output.txt");
  }

  private String tail() throws IOException {
    List<String> lines = Files.readAllLines(output());
    return String.join("\n", lines.subList(Math.max(0, lines.size() - SHOWN_LINES), lines.size()));
  }

  private static void delete(Path folder) throws IOException {
    if (!Files.exists(folder)) {
      return;
    }
    try (Stream<Path> entries = Files.walk(folder)) {
      for (Path entry : entries.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(entry);
      }
    }
  }
}
