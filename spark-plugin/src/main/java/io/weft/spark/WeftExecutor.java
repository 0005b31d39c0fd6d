package io.weft.spark;

import io.weft.exchange.ExecutorExchange;
import io.weft.spark.collectives.ExecutorCollectives;
import java.util.Optional;

/**
 * The executor's end of Weft in this JVM.
 *
 * <p>Thread-safe.
 */
public final class WeftExecutor {
  private static volatile ExecutorExchange running;
  private static volatile ExecutorCollectives collectives;

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
                        .formatted(WeftPlugin.class.getName())));
  }

  /** The exchange of this executor, if one runs. */
  public static Optional<ExecutorExchange> current() {
    return Optional.ofNullable(running);
  }

  /** What makes communicators for the tasks of this executor, if Weft runs. */
  public static Optional<ExecutorCollectives> collectives() {
    return Optional.ofNullable(collectives);
  }

  static void start(ExecutorExchange exchange, ExecutorCollectives communicators) {
    running = exchange;
    collectives = communicators;
  }

  static void stop() {
    running = null;
    collectives = null;
  }
}
