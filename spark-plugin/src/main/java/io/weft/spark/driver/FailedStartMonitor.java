package io.weft.spark.driver;

import io.weft.spark.config.Activation;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Logs an error when executors end before Weft has started on them. Stops the application if this
 * repeats and no other executor is alive. A standalone cluster counts such executors as running and
 * would replace them forever, while the application's jobs wait.
 *
 * <p>Called on the thread of Spark's listeners, one event at a time.
 */
public final class FailedStartMonitor extends SparkListener {
  private static final Logger LOG = LoggerFactory.getLogger(FailedStartMonitor.class);

  /** Maximum retries of a standalone cluster; negative means unlimited. */
  private static final String LIMIT_KEY = "spark.deploy.maxExecutorRetries";

  private static final int DEFAULT_LIMIT = 10;

  /** Spark's reason for an executor that the driver itself removed. */
  private static final String KILLED = "Executor killed by driver";

  private final DriverState state;
  private final Runnable stopApplication;
  private final int limit;
  private final Set<String> inARow = new HashSet<>();
  private boolean hinted;

  /**
   * Listens for an application.
   *
   * @param stopApplication called at most once, on its own thread
   */
  public FailedStartMonitor(DriverState state, SparkConf conf, Runnable stopApplication) {
    this.state = state;
    this.stopApplication = stopApplication;
    this.limit = conf.getInt(LIMIT_KEY, DEFAULT_LIMIT);
  }

  @Override
  public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
    if (state.peer(removed.executorId()) != null) {
      inARow.clear(); // Weft had started on it.
      return;
    }
    if (removed.reason().startsWith(KILLED)) {
      return; // Dynamic allocation removed an idle executor. This is not an error.
    }
    hint(removed);
    if (state.peers() > 0) {
      // Other executors work, so the application continues.
      inARow.clear();
      return;
    }
    // Spark reports the removal of some executors twice: when they announce their end, and when
    // they have ended.
    boolean another = inARow.add(removed.executorId());
    if (another && limit >= 0 && inARow.size() == Math.max(1, limit)) {
      LOG.error(
          "{} executors in a row ended before Weft started on them, the last one {} ({}). The"
              + " application is stopped; see the errors above, the executors' logs, and {} for"
              + " the number.",
          inARow.size(),
          removed.executorId(),
          removed.reason(),
          LIMIT_KEY);
      stop();
    }
  }

  /**
   * Uses a thread without inherited thread locals, because Spark identifies its listener thread by
   * them.
   */
  private void stop() {
    Thread stopping = new Thread(null, stopApplication, "weft-stop-application", 0, false);
    stopping.setDaemon(true);
    stopping.start();
  }

  private void hint(SparkListenerExecutorRemoved removed) {
    if (!hinted && !state.wasGreeted(removed.executorId())) {
      hinted = true;
      LOG.error(
          "Executor {} ended before Weft started on it ({}). If its log says"
              + " ClassNotFoundException:"
              + " {}, Weft's jar is on the driver only: pass it with --jars (spark.jars), or put it"
              + " in the jars folder of every host.",
          removed.executorId(),
          removed.reason(),
          Activation.PLUGIN);
    }
  }
}
