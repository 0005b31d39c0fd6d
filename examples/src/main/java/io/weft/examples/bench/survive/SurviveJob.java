package io.weft.examples.bench.survive;

import io.weft.examples.side.SideTask;
import java.io.Serializable;
import java.time.Instant;
import java.util.Comparator;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.SparkContext;
import org.apache.spark.Success$;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.SparkListener;
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
   */
  record Result(double seconds, int tasks, double cpuSeconds, String sum) implements Serializable {}

  @Override
  public Result run(SparkSession session) throws Exception {
    session.conf().set("spark.sql.adaptive.enabled", "false");
    session.conf().set("spark.sql.shuffle.partitions", Integer.toString(TASKS));
    TaskCount count = new TaskCount(killAfter);
    SparkContext context = session.sparkContext();
    context.addSparkListener(count);
    try {
      long start = System.nanoTime();
      Row sum = job(session).first();
      double took = (System.nanoTime() - start) / 1e9;
      context.listenerBus().waitUntilEmpty(EVENTS_MILLIS);
      return new Result(took, count.tasks.get(), count.cpuNanos.get() / 1e9, sum.toString());
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

  /** The executor that was started last, so that the same one is hit on all sides. */
  private static void killNewestExecutor() {
    ProcessHandle.current()
        .descendants()
        .max(Comparator.comparing(executor -> executor.info().startInstant().orElse(Instant.MIN)))
        .ifPresent(ProcessHandle::destroyForcibly);
  }

  /**
   * Counts tasks and their CPU time. The end of a task is the time of a death, because the seconds
   * of a job differ from run to run.
   */
  private static final class TaskCount extends SparkListener {
    private final AtomicInteger tasks = new AtomicInteger();
    private final AtomicLong cpuNanos = new AtomicLong();
    private final int killAfter;

    TaskCount(int killAfter) {
      this.killAfter = killAfter;
    }

    @Override
    public void onTaskEnd(SparkListenerTaskEnd end) {
      if (end.taskMetrics() != null) {
        cpuNanos.addAndGet(end.taskMetrics().executorCpuTime());
      }
      // Spark reports a successful task once more when it decides to repeat it.
      if (end.reason() instanceof Success$ && tasks.incrementAndGet() == killAfter) {
        killNewestExecutor();
      }
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
