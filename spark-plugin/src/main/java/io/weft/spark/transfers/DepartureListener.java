package io.weft.spark.transfers;

import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;

/** Hears from Spark which executors are gone. For Spark's listener thread. */
public final class DepartureListener extends SparkListener {
  private final DepartedExecutors departed;
  private final CliqueMeetings meetings;

  /** Tells these. */
  public DepartureListener(DepartedExecutors departed, CliqueMeetings meetings) {
    this.departed = departed;
    this.meetings = meetings;
  }

  @Override
  public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
    String executor = removed.executorId();
    if (departed.add(new Departure(executor, removed.reason()))) {
      departed.reason(executor).ifPresent(reason -> meetings.departed(executor, reason));
    }
  }
}
