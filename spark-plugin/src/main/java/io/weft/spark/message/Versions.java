package io.weft.spark.message;

/** The message for an executor with another version of Weft than the driver. */
public final class Versions {
  private Versions() {}

  /** Returns the message. */
  public static String mismatch(String executorId, String host, String executors, String drivers) {
    return "Executor %s on %s runs Weft %s, but the driver runs Weft %s. Put the same jar in the"
        + " jars folder of every host, or pass it with --jars."
            .formatted(executorId, host, executors, drivers);
  }
}
