package io.weft.spark.runtime;

import io.weft.spark.config.WeftSettings;
import io.weft.spark.runtime.Messages.ExecutorReport;
import io.weft.spark.runtime.Messages.Report;
import io.weft.spark.runtime.WeftMetrics.ExecutorStatistics;
import java.io.IOException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.spark.api.plugin.PluginContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends this executor's metrics to the driver for the UI whenever they change.
 *
 * <p>It has one daemon thread, which {@link #close()} ends; none if the UI is off.
 */
final class StatusReporter implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(StatusReporter.class);
  private static final long PERIOD_MILLIS = 2000;

  private final PluginContext context;
  private final String host;
  private final Supplier<ExecutorStatistics> statistics;
  private final ScheduledExecutorService thread;
  private ExecutorReport last;

  private StatusReporter(
      PluginContext context,
      String host,
      Supplier<ExecutorStatistics> statistics,
      ScheduledExecutorService thread) {
    this.context = context;
    this.host = host;
    this.statistics = statistics;
    this.thread = thread;
  }

  /** Starts to report, unless the UI is off. */
  static StatusReporter start(
      PluginContext context, String host, Supplier<ExecutorStatistics> statistics) {
    ScheduledExecutorService thread =
        Executors.newSingleThreadScheduledExecutor(StatusReporter::newThread);
    StatusReporter reporter = new StatusReporter(context, host, statistics, thread);
    if (wanted(context)) {
      var unused =
          thread.scheduleWithFixedDelay(reporter::report, 0, PERIOD_MILLIS, TimeUnit.MILLISECONDS);
    }
    return reporter;
  }

  private static boolean wanted(PluginContext context) {
    return WeftSettings.UI_ENABLED.get(context.conf())
        && context.conf().getBoolean("spark.ui.enabled", true);
  }

  private static Thread newThread(Runnable task) {
    Thread thread = new Thread(task, "weft-status-reporter");
    thread.setDaemon(true);
    return thread;
  }

  private void report() {
    try {
      ExecutorReport now = ExecutorReport.of(context.executorID(), host, statistics.get());
      if (!now.equals(last)) {
        context.send(MessageCodec.encode(new Report(now)));
        last = now;
      }
    } catch (IOException | RuntimeException e) {
      LOG.debug("The report did not reach the driver; the next one may", e);
    }
  }

  @Override
  public void close() {
    thread.shutdownNow();
  }
}
