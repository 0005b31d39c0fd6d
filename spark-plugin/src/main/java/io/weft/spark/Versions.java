package io.weft.spark;

/** What is said when an executor runs another Weft than the driver. */
final class Versions {
  private Versions() {}

  static String mismatch(String executorId, String host, String executors, String drivers) {
    return "Executor %s on %s runs Weft %s, but the driver runs Weft %s. Put the same jar in the jars folder of every host, or pass it with --jars."
        .formatted(executorId, host, executors, drivers);
  }
}
