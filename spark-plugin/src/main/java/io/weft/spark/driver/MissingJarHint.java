package io.weft.spark.driver;

import io.weft.spark.config.Activation;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Says once what is wrong when executors end before their plugin said a word: most often Weft's jar
 * is on the driver only. The executors' own logs, where the class that was not found is named, are
 * the last place people look.
 *
 * <p>For Spark's listener thread.
 */
public final class MissingJarHint extends SparkListener {
  private static final Logger LOG = LoggerFactory.getLogger(MissingJarHint.class);

  private final DriverState state;
  private final AtomicBoolean said = new AtomicBoolean();

  public MissingJarHint(DriverState state) {
    this.state = state;
  }

  @Override
  public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
    if (!state.wasGreeted(removed.executorId()) && said.compareAndSet(false, true)) {
      LOG.error(
          "Executor {} ended before Weft started on it ({}). If its log says ClassNotFoundException:"
              + " {}, Weft's jar is on the driver only: pass it with --jars (spark.jars), or put it"
              + " in the jars folder of every host.",
          removed.executorId(),
          removed.reason(),
          Activation.PLUGIN);
    }
  }
}
