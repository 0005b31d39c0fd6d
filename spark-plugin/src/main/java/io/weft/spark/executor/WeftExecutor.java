package io.weft.spark.executor;

import io.weft.exchange.ExecutorExchange;
import io.weft.spark.config.Activation;
import io.weft.spark.message.MessageCodec;
import io.weft.spark.message.Messages.ToDriver;
import java.util.Optional;
import org.apache.spark.api.plugin.PluginContext;

/**
 * The executor's end of Weft in this JVM.
 *
 * <p>Thread-safe.
 */
public final class WeftExecutor {
  private static volatile ExecutorExchange running;
  private static volatile PluginContext driver;

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

  /**
   * Asks the driver's Weft, and waits for the answer, at most Spark's {@code spark.rpc.askTimeout}.
   *
   * @throws Exception when there is no answer; the driver may have the message for all that
   */
  public static Object ask(ToDriver message) throws Exception {
    PluginContext context = driver;
    if (context == null) {
      throw new IllegalStateException("no Weft runs in this JVM any more to tell " + message);
    }
    return MessageCodec.decode(context.ask(MessageCodec.encode(message)));
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
