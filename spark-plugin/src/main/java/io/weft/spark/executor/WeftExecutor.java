package io.weft.spark.executor;

import io.weft.exchange.ExecutorExchange;
import io.weft.spark.config.Activation;
import java.util.Optional;

/**
 * The executor's end of Weft in this JVM.
 *
 * <p>Thread-safe.
 */
public final class WeftExecutor {
  private static volatile ExecutorExchange running;

  private WeftExecutor() {}

  /**
   * The exchange of this executor. What a task opened from it stays readable until the task closes
   * it, also when the executor stops meanwhile.
   *
   * @throws IllegalStateException if none runs: the plugin was not started in this JVM, or has been
   *     stopped
   */
  public static ExecutorExchange exchange() {
    return current()
        .orElseThrow(
            () ->
                new IllegalStateException(
                    "No Weft exchange runs in this JVM. Is spark.plugins set to %s, and has the application not been stopped?"
                        .formatted(Activation.PLUGIN)));
  }

  /** The exchange of this executor, if one runs. */
  public static Optional<ExecutorExchange> current() {
    return Optional.ofNullable(running);
  }

  static void start(ExecutorExchange exchange) {
    running = exchange;
  }

  static void stop() {
    running = null;
  }
}
