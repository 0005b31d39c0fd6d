package io.weft.examples.bench.survive;

import io.weft.examples.side.SideTask;
import java.io.Serializable;
import java.time.Instant;
import java.util.Comparator;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.apache.spark.SparkContext;
import org.apache.spark.Success$;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;

/**
 * A job of three stages of 16 tasks with a shuffle after each of the first two, and a small sum at
 * the end. Each task waits for its part of the given time, spread over its rows.
 *
 * @param seconds of the job on two executors of one core
 * @param rows of each shuffle
 * @param killAfter tasks, the executor that was started last is killed; never if 0
 */
record SurviveJob(double seconds, long rows, int killAfter) implements SideTask<SurviveJob.Result> {
  private static final int TASKS = 16;
  private static final int STAGES = 3;
  private static final int CORES = 2;
  private static final int WAITS_OF_TASK = 20;
  private static final long EVENTS_MILLIS = 30_000;

  /**
   * What a job did.
   *
   * @param tasks that ended successfully
   * @param cpuSeconds of all tasks, as Spark measures it
   * @param sum of all rows, equal for all sides
   * @param kill of an executor; null if none was asked for
   */
  record Result(double seconds, int tasks, double cpuSeconds, String sum, Kill kill)
      implements Serializable {}

  /**
   * The death of an executor. Times are in seconds after the process had ended.
   *
   * @param lastTask when the job's last task ended; not positive if that was before the death
   * @param noticed when the driver removed the executor; NaN if it did not during the job
   * @param replaced when the driver added the next executor; NaN if it did not during the job
   */
  record Kill(double lastTask, double noticed, double replaced) implements Serializable {
    /** Whether the job lost an executor. Else its length says nothing about a death. */
    boolean inTime() {
      return lastTask > 0;
    }
  }

  @Override
  public Result run(SparkSession session) throws Exception {
    session.conf().set("spark.sql.adaptive.enabled", "false");
    session.conf().set("spark.sql.shuffle.partitions", Integer.toString(TASKS));
    TaskCount count = new TaskCount(killAfter, TaskCount::newestExecutor);
    SparkContext context = session.sparkContext();
    context.addSparkListener(count);
    try {
      long start = System.nanoTime();
      Row sum = job(session).first();
      double took = (System.nanoTime() - start) / 1e9;
      context.listenerBus().waitUntilEmpty(EVENTS_MILLIS);
      return new Result(
          took, count.tasks.get(), count.cpuNanos.get() / 1e9, sum.toString(), count.kill());
    } finally {
      context.removeSparkListener(count);
    }
  }

  private Dataset<Row> job(SparkSession session) {
    long every = Math.max(1, rows / (TASKS * WAITS_OF_TASK));
    long waits = (rows + every - 1) / every;
    long nanos = (long) (seconds * 1e9 * CORES / (STAGES * waits));
    UserDefinedFunction pace =
        functions.udf(new Pace(every, nanos), DataTypes.LongType).asNondeterministic();
    Dataset<Row> data =
        session
            .range(0, rows, 1, TASKS)
            .withColumn(
                "pad", functions.expr("concat(sha2(string(id), 256), sha2(string(id + 1), 256))"));
    for (int stage = 1; stage < STAGES; stage++) {
      data =
          data.withColumn("id", pace.apply(functions.col("id")))
              .repartition(TASKS, functions.expr("id + " + stage));
    }
    return data.withColumn("id", pace.apply(functions.col("id")))
        .selectExpr("count(*)", "sum(xxhash64(id, pad) % 1000000007)");
  }

  /** Waits at some values of a column. */
  private record Pace(long every, long nanos) implements UDF1<Long, Long> {
    @Override
    public Long call(Long id) {
      if (id % every == 0) {
        long end = System.nanoTime() + nanos;
        while (System.nanoTime() < end) {
          LockSupport.parkNanos(end - System.nanoTime());
          TaskContext.get().killTaskIfInterrupted();
        }
      }
      return id;
    }
  }

  /**
   * Counts tasks and their CPU time, and kills. The end of a task is the time of a death, because
   * the seconds of a job differ from run to run. Events arrive late, so a death near the end of a
   * job may come after it.
   */
  static final class TaskCount extends SparkListener {
    private static final long END_SECONDS = 10;
    private static final double MILLIS = 1e3;

    private final AtomicInteger tasks = new AtomicInteger();
    private final AtomicLong cpuNanos = new AtomicLong();
    private final int killAfter;
    private final Supplier<Optional<ProcessHandle>> executors;

    /** Milliseconds since 1970, 0 if it has not happened. Set on the thread of the events. */
    private volatile long died;

    private volatile long lastTask;
    private volatile long noticed;
    private volatile long replaced;
    private volatile String failure;

    /**
     * Starts with no task.
     *
     * @param killAfter tasks; never if 0
     * @param executors gives the process to kill; empty if none runs
     */
    TaskCount(int killAfter, Supplier<Optional<ProcessHandle>> executors) {
      this.killAfter = killAfter;
      this.executors = executors;
    }

    @Override
    public void onTaskEnd(SparkListenerTaskEnd end) {
      if (end.taskMetrics() != null) {
        cpuNanos.addAndGet(end.taskMetrics().executorCpuTime());
      }
      // Spark reports a successful task once more when it decides to repeat it.
      if (!(end.reason() instanceof Success$)) {
        return;
      }
      lastTask = Math.max(lastTask, end.taskInfo().finishTime());
      if (tasks.incrementAndGet() == killAfter) {
        killOne();
      }
    }

    private void killOne() {
      Optional<ProcessHandle> victim = executors.get();
      if (victim.isEmpty()) {
        failure = "no executor's process was found";
        return;
      }
      victim.get().destroyForcibly();
      try {
        victim.get().onExit().get(END_SECONDS, TimeUnit.SECONDS);
        died = System.currentTimeMillis();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        failure = "interrupted";
      } catch (ExecutionException | TimeoutException e) {
        failure = "process " + victim.get().pid() + " has not ended: " + e;
      }
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
      if (died > 0 && noticed == 0) {
        noticed = removed.time();
      }
    }

    @Override
    public void onExecutorAdded(SparkListenerExecutorAdded added) {
      if (died > 0 && replaced == 0) {
        replaced = added.time();
      }
    }

    /**
     * The death, once all events of the job have arrived; null if none was asked for.
     *
     * @throws IllegalStateException if it was asked for and no executor has died
     */
    Kill kill() {
      if (killAfter == 0) {
        return null;
      }
      if (died == 0) {
        throw new IllegalStateException(
            "no executor died after task %d of a job that ended %d tasks: %s"
                .formatted(
                    killAfter, tasks.get(), failure == null ? "too few tasks ended" : failure));
      }
      return new Kill(
          (lastTask - died) / MILLIS, secondsAfterDeath(noticed), secondsAfterDeath(replaced));
    }

    private double secondsAfterDeath(long millis) {
      return millis == 0 ? Double.NaN : (millis - died) / MILLIS;
    }

    /** The executor that was started last, so that the same one is hit on all sides. */
    static Optional<ProcessHandle> newestExecutor() {
      return ProcessHandle.current()
          .descendants()
          .max(
              Comparator.comparing(executor -> executor.info().startInstant().orElse(Instant.MIN)));
    }
  }

  /** Waits until a number of executors run. */
  record AwaitExecutors(int executors) implements SideTask<Integer> {
    private static final long DEADLINE_NANOS = TimeUnit.MINUTES.toNanos(2);
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    @Override
    public Integer run(SparkSession session) {
      long deadline = System.nanoTime() + DEADLINE_NANOS;
      JavaSparkContext context = new JavaSparkContext(session.sparkContext());
      int running;
      do {
        LockSupport.parkNanos(PAUSE_NANOS);
        // The driver counts too.
        running = context.sc().statusTracker().getExecutorInfos().length - 1;
      } while (running < executors && System.nanoTime() < deadline);
      if (running < executors) {
        throw new IllegalStateException("only " + running + " executors run");
      }
      return running;
    }
  }
}
