package io.weft.spark.runtime;

import io.weft.shuffle.ExecutorExchange;
import io.weft.spark.config.Activation;
import io.weft.spark.runtime.Messages.ToDriver;
import java.io.IOException;
import java.util.Optional;
import org.apache.spark.api.plugin.PluginContext;

/**
 * Access to the running Weft of this JVM's executor.
 *
 * <p>Thread-safe.
 */
public final class WeftExecutor {
  private static volatile ExecutorExchange running;
  private static volatile PluginContext driver;

  private WeftExecutor() {}

  /**
   * Returns the exchange of this executor. A reader that a task opened stays valid until the task
   * closes it, even if the executor stops.
   *
   * @throws IllegalStateException if none runs, because the plugin was not started in this JVM or
   *     has been stopped
   */
  public static ExecutorExchange exchange() {
    return current()
        .orElseThrow(
            () ->
                new IllegalStateException(
                    ("No Weft exchange runs in this JVM. Is spark.plugins set to %s, and has the"
                            + " application not been stopped?")
                        .formatted(Activation.PLUGIN)));
  }

  /** Returns the exchange of this executor, if one runs. */
  public static Optional<ExecutorExchange> current() {
    return Optional.ofNullable(running);
  }

  /**
   * Sends a message to the driver and waits for the answer, at most for Spark's {@code
   * spark.rpc.askTimeout}.
   *
   * @throws Exception if there is no answer; the driver may have received the message anyway
   */
  public static Object ask(ToDriver message) throws Exception {
    PluginContext context = driver;
    if (context == null) {
      throw new IllegalStateException("Weft has stopped in this JVM and cannot send " + message);
    }
    return MessageCodec.ask(context, message);
  }

  /** Sends a message that needs no answer to the driver. Does nothing if Weft has stopped. */
  public static void send(ToDriver message) throws IOException {
    PluginContext context = driver;
    if (context != null) {
      MessageCodec.send(context, message);
    }
  }

  static void start(ExecutorExchange exchange, PluginContext context) {
    driver = context;
    running = exchange;
  }

  static void stop() {
    running = null;
    driver = null;
  }
}
