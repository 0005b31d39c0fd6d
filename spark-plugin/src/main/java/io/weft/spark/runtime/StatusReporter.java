package io.weft.spark.runtime;

import io.weft.shuffle.peer.Traffic;
import io.weft.shuffle.peer.TrafficReport;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.runtime.Messages.ExecutorReport;
import io.weft.spark.runtime.Messages.Report;
import io.weft.spark.runtime.WeftMetrics.ExecutorStatistics;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.apache.spark.api.plugin.PluginContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends this executor's metrics to the driver for the UI. It reads them every two seconds. It sends
 * them when they have changed and are then the same twice, or after {@link #MAX_AGE} if they keep
 * changing: one thread of the driver receives the reports of all executors. {@link #close()} sends
 * the last report.
 *
 * <p>Figures of a report that is lost with its connection are lost. It has one daemon thread, which
 * {@link #close()} ends; none if the UI is off.
 */
final class StatusReporter implements AutoCloseable {
  /** The time between two reports while metrics keep changing. */
  static final Duration MAX_AGE = Duration.ofSeconds(10);

  private static final Logger LOG = LoggerFactory.getLogger(StatusReporter.class);
  private static final long PERIOD_MILLIS = 2000;

  /** Messages with what is left when the executor ends. */
  private static final int MAX_LAST = 16;

  private final PluginContext context;
  private final Supplier<ExecutorReport> reports;
  private final Traffic traffic;
  private final LongSupplier clock;
  private final ScheduledExecutorService thread =
      Executors.newSingleThreadScheduledExecutor(StatusReporter::newThread);
  private ExecutorReport read;
  private ExecutorReport sent;
  private long sentNanos;
  private boolean running;

  /**
   * Creates a reporter that does not run yet.
   *
   * @param reports reads the metrics
   * @param traffic what the executor wrote and read, of which each report takes some
   * @param clock nanoseconds, as of {@code System.nanoTime}
   */
  StatusReporter(
      PluginContext context,
      Supplier<ExecutorReport> reports,
      Traffic traffic,
      LongSupplier clock) {
    this.context = context;
    this.reports = reports;
    this.traffic = traffic;
    this.clock = clock;
  }

  /** Starts to report, unless the UI is off. */
  static StatusReporter start(
      PluginContext context,
      String host,
      Supplier<ExecutorStatistics> statistics,
      Traffic traffic) {
    StatusReporter reporter =
        new StatusReporter(
            context,
            () -> ExecutorReport.of(context.executorID(), host, statistics.get()),
            traffic,
            System::nanoTime);
    if (wanted(context)) {
      reporter.running = true;
      var unused =
          reporter.thread.scheduleWithFixedDelay(
              reporter::report, 0, PERIOD_MILLIS, TimeUnit.MILLISECONDS);
    }
    return reporter;
  }

  private static boolean wanted(PluginContext context) {
    return WeftSettings.UI_ENABLED.get(context.conf())
        && (context.conf().getBoolean("spark.ui.enabled", true)
            || context.conf().getBoolean("spark.eventLog.enabled", false));
  }

  private static Thread newThread(Runnable task) {
    Thread thread = new Thread(task, "weft-status-reporter");
    thread.setDaemon(true);
    return thread;
  }

  /** Reads the metrics once. Called by one thread at a time. */
  void report() {
    try {
      ExecutorReport now = reports.get();
      boolean same = now.equals(read);
      read = now;
      boolean changed = !now.equals(sent) || traffic.isPending();
      if (sent == null || (changed && (same || isOld()))) {
        MessageCodec.send(context, new Report(now, traffic.take(), false));
        sent = now;
        sentNanos = clock.getAsLong();
      }
    } catch (IOException | RuntimeException e) {
      LOG.debug("The report did not reach the driver; the next one may", e);
    }
  }

  private boolean isOld() {
    return clock.getAsLong() - sentNanos >= MAX_AGE.toNanos();
  }

  @Override
  public void close() {
    thread.shutdownNow();
    if (running) {
      running = false;
      reportLast();
    }
  }

  /** Reports what is left, in a few messages at most. */
  private void reportLast() {
    try {
      ExecutorReport now = reports.get();
      for (int i = 0; i < MAX_LAST && traffic.isPending(); i++) {
        MessageCodec.send(context, new Report(now, traffic.take(), false));
      }
      MessageCodec.send(context, new Report(now, TrafficReport.NONE, true));
    } catch (IOException | RuntimeException e) {
      LOG.debug("The last report did not reach the driver", e);
    }
  }
}
