package io.weft.examples.jobs;

import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.LongAdder;
import org.apache.spark.SparkContext;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/** Measures what is run: the time on the driver's clock and the sum of its tasks' metrics. */
final class JobMeter extends SparkListener {
  private static final long LISTENER_DEADLINE_MILLIS = TimeUnit.MINUTES.toMillis(1);

  private final LongAdder cpuNanos = new LongAdder();
  private final LongAdder gcMillis = new LongAdder();
  private final LongAdder shuffleBytes = new LongAdder();
  private final LongAdder remoteBytes = new LongAdder();
  private final LongAdder spilledBytes = new LongAdder();

  private JobMeter() {}

  /** What an action returned and what it cost. */
  record Measured<T>(T value, JobCost cost) {}

  /** Runs an action on the calling thread; nothing else may use the context meanwhile. */
  static <T> Measured<T> measure(SparkContext context, Callable<T> action) throws Exception {
    // Tasks that ended just before still have their events on the way.
    drain(context);
    JobMeter meter = new JobMeter();
    context.addSparkListener(meter);
    try {
      long start = System.nanoTime();
      T value = action.call();
      double seconds = (System.nanoTime() - start) / 1e9;
      drain(context);
      return new Measured<>(value, meter.cost(seconds));
    } finally {
      context.removeSparkListener(meter);
    }
  }

  private static void drain(SparkContext context) throws TimeoutException {
    context.listenerBus().waitUntilEmpty(LISTENER_DEADLINE_MILLIS);
  }

  @Override
  public void onTaskEnd(SparkListenerTaskEnd end) {
    TaskMetrics metrics = end.taskMetrics();
    if (metrics == null) {
      return;
    }
    cpuNanos.add(metrics.executorCpuTime());
    gcMillis.add(metrics.jvmGCTime());
    shuffleBytes.add(metrics.shuffleWriteMetrics().bytesWritten());
    remoteBytes.add(metrics.shuffleReadMetrics().remoteBytesRead());
    spilledBytes.add(metrics.diskBytesSpilled());
  }

  private JobCost cost(double seconds) {
    return new JobCost(
        seconds,
        cpuNanos.sum() / 1e9,
        gcMillis.sum() / 1e3,
        shuffleBytes.sum(),
        remoteBytes.sum(),
        spilledBytes.sum());
  }
}
