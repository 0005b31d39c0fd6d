package io.weft.tests.support;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Command lines of JVMs that run parts of Spark. */
final class Jvm {
  /**
   * Options for short-lived JVMs, which end before an optimising compiler pays off. The compiler
   * would take half of the processor time of such a test.
   */
  static final List<String> SHORT_LIVED = List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC");

  private Jvm() {}

  /** A command to which the caller may append the arguments of the main class. */
  static List<String> command(String classPath, List<String> options, String mainClass) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of(BuildTree.jvmOpens()));
    command.add("-Xmx768m");
    command.addAll(SHORT_LIVED);
    command.addAll(options);
    command.addAll(List.of("-cp", classPath, mainClass));
    return command;
  }
}
