package io.weft.spark;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;

/** Watches which stages Spark repeats, from its creation to its close. */
public final class StageAttempts extends SparkListener implements AutoCloseable {
  private final SparkContext context;
  private final Set<String> repeated = ConcurrentHashMap.newKeySet();

  public StageAttempts(SparkContext context) {
    this.context = context;
    context.addSparkListener(this);
  }

  @Override
  public void onStageSubmitted(SparkListenerStageSubmitted event) {
    if (event.stageInfo().attemptNumber() > 0) {
      repeated.add(event.stageInfo().name() + ", attempt " + event.stageInfo().attemptNumber());
    }
  }

  /** The repeated attempts that have begun. */
  public Set<String> repeated() throws TimeoutException {
    context.listenerBus().waitUntilEmpty(60_000);
    return repeated;
  }

  @Override
  public void close() {
    context.removeSparkListener(this);
  }
}
