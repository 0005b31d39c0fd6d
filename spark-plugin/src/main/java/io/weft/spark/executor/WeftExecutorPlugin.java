package io.weft.spark.executor;

import com.codahale.metrics.Gauge;
import com.codahale.metrics.MetricRegistry;
import io.weft.exchange.ExecutorExchange;
import io.weft.spark.config.Activation;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.message.MessageCodec;
import io.weft.spark.message.Messages.Announce;
import io.weft.spark.message.Messages.Hello;
import io.weft.spark.message.Messages.Verdict;
import io.weft.spark.message.Versions;
import io.weft.spark.message.WeftVersion;
import io.weft.spark.metrics.Metric;
import io.weft.spark.metrics.WeftMetrics;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.Map;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;

/**
 * The executor's side: owns the exchange of its JVM from before the first task until after the
 * last. In local mode the driver is the executor.
 *
 * <p>Spark calls {@link #init} and {@link #shutdown} once each.
 */
public final class WeftExecutorPlugin implements ExecutorPlugin {
  private ExecutorExchange exchange;
  private StatusReporter reporter;

  @Override
  public void init(PluginContext context, Map<String, String> fromDriver) {
    if (!Boolean.parseBoolean(fromDriver.get(Activation.ACTIVE))) {
      return;
    }
    ExecutorOptions options = new ExecutorOptions(SparkEnv.get(), context);
    greet(context, options.host(), fromDriver.get(Activation.VERSION));
    DriverPeers peers = new DriverPeers(context, WeftSettings.FETCH_TIMEOUT.get(context.conf()));
    try {
      exchange =
          ExecutorExchange.open(options.build(fromDriver.get(Activation.APPLICATION_KEY)), peers);
    } catch (IOException e) {
      throw new UncheckedIOException(
          "Weft cannot start on executor " + context.executorID() + ": " + e.getMessage(), e);
    }
    begin(context, options.host());
  }

  /** Asks the driver whether this executor may join, before it takes any memory. */
  private static void greet(PluginContext context, String host, String driversVersion) {
    String ours = WeftVersion.current();
    String refusal = refusal(ask(context, new Hello(context.executorID(), host, ours)));
    if (refusal == null && !ours.equals(driversVersion)) {
      refusal = Versions.mismatch(context.executorID(), host, ours, driversVersion);
    }
    if (refusal != null) {
      throw new IllegalStateException(refusal);
    }
  }

  private void begin(PluginContext context, String host) {
    try {
      String refusal =
          refusal(ask(context, new Announce(exchange.address(), exchange.remark().orElse(null))));
      if (refusal != null) {
        throw new IllegalStateException(refusal);
      }
    } catch (RuntimeException e) {
      exchange.close();
      throw e;
    }
    exchange.onPressure(new PressureReport(context));
    register(context.metricRegistry(), exchange);
    reporter = StatusReporter.start(context, host, exchange);
    WeftExecutor.start(exchange);
  }

  private static String refusal(Object answer) {
    return ((Verdict) answer).refusal();
  }

  private static Object ask(PluginContext context, Serializable message) {
    try {
      return MessageCodec.decode(context.ask(MessageCodec.encode(message)));
    } catch (Exception e) {
      throw new IllegalStateException(
          "Executor %s asked the driver's Weft to join and got no answer: %s"
              .formatted(context.executorID(), e),
          e);
    }
  }

  private static void register(MetricRegistry registry, ExecutorExchange exchange) {
    for (Metric metric : WeftMetrics.all()) {
      registry.register(metric.name(), (Gauge<Long>) () -> metric.read(exchange.statistics()));
    }
  }

  @Override
  public void shutdown() {
    if (exchange == null) {
      return;
    }
    WeftExecutor.stop();
    reporter.close();
    exchange.close();
  }
}
