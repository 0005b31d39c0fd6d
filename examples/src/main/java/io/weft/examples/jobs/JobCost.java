package io.weft.examples.jobs;

import java.io.Serializable;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.LongAdder;
import org.apache.spark.SparkContext;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/**
 * The cost of a job.
 *
 * @param seconds on the driver, from the call to the result
 * @param cpuSeconds of all tasks of the job, on the threads that ran them
 * @param gcSeconds that tasks spent waiting for the garbage collector
 * @param shuffleBytes written by map tasks, in their stored form
 * @param remoteBytes that reduce tasks fetched over the network, as Spark counts it
 * @param spilledBytes that tasks wrote to disk because memory was full
 */
public record JobCost(
    double seconds,
    double cpuSeconds,
    double gcSeconds,
    long shuffleBytes,
    long remoteBytes,
    long spilledBytes)
    implements Serializable {

  /** Measures an action: the time on the driver and the sum of the metrics of its tasks. */
  static final class Meter extends SparkListener {
    private static final long LISTENER_DEADLINE_MILLIS = TimeUnit.MINUTES.toMillis(1);

    private final LongAdder cpuNanos = new LongAdder();
    private final LongAdder gcMillis = new LongAdder();
    private final LongAdder shuffleBytes = new LongAdder();
    private final LongAdder remoteBytes = new LongAdder();
    private final LongAdder spilledBytes = new LongAdder();

    private Meter() {}

    /** The result and the cost of an action. */
    record Measured<T>(T value, JobCost cost) {}

    /** Runs an action on the calling thread. No other job may use the context meanwhile. */
    static <T> Measured<T> measure(SparkContext context, Callable<T> action) throws Exception {
      // Events of earlier tasks may still be in the queue.
      drain(context);
      Meter meter = new Meter();
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
}
