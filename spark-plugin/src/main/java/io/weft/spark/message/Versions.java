package io.weft.spark.message;

/** What is said when an executor runs another Weft than the driver. */
public final class Versions {
  private Versions() {}

  /** The sentence for it. */
  public static String mismatch(String executorId, String host, String executors, String drivers) {
    return "Executor %s on %s runs Weft %s, but the driver runs Weft %s. Put the same jar in the jars folder of every host, or pass it with --jars."
        .formatted(executorId, host, executors, drivers);
  }
}
