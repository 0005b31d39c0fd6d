package io.weft.tests.support;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Command lines of JVMs that run parts of Spark. */
final class Jvm {
  /**
   * Options for short-lived JVMs, which end before an optimising compiler pays off. The compiler
   * would take half of the processor time of such a test. Without the last option, each JVM would
   * collect all garbage several times while it loads Spark's classes.
   */
  private static final List<String> SHORT_LIVED =
      List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:MetaspaceSize=192m");

  private Jvm() {}

  /** Options of a JVM that runs for a short time. */
  static List<String> shortLived() {
    return SHORT_LIVED;
  }

  /** Options of a JVM that runs a home's Spark for a short time. */
  static List<String> options(SparkHome home) {
    List<String> options = new ArrayList<>(SHORT_LIVED);
    options.addAll(home.archiveOptions());
    return options;
  }

  /** The same as one setting, for the executors of an application. */
  static String executorOptions(SparkHome home) {
    return String.join(" ", options(home));
  }

  /**
   * A command to which the caller may append the arguments of the main class.
   *
   * @param classPath begins with the home's own
   */
  static List<String> command(
      SparkHome home, String classPath, List<String> options, String mainClass) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of(BuildTree.jvmOpens()));
    command.add("-Xmx768m");
    command.addAll(options(home));
    command.addAll(options);
    command.addAll(List.of("-cp", classPath, mainClass));
    return command;
  }
}
