package io.weft.examples.jobs;

import io.weft.examples.side.SideTask;
import java.io.Serializable;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.sql.SparkSession;

/**
 * Runs a task with a timeout. After it, all jobs are cancelled until the task ends.
 *
 * @param task to run; all its time is in jobs
 * @param seconds the timeout
 */
public record Limited<R extends Serializable>(SideTask<R> task, long seconds)
    implements SideTask<R> {
  private static final long REPEAT_SECONDS = 1;

  @Override
  public R run(SparkSession session) throws Exception {
    AtomicBoolean expired = new AtomicBoolean();
    ScheduledExecutorService clock =
        Executors.newSingleThreadScheduledExecutor(
            work -> {
              Thread thread = new Thread(work, "weft-side-timeout");
              thread.setDaemon(true);
              return thread;
            });
    // Again and again, because an adaptive plan may start another job at the same moment.
    ScheduledFuture<?> cancels =
        clock.scheduleAtFixedRate(
            () -> {
              expired.set(true);
              session.sparkContext().cancelAllJobs();
            },
            seconds,
            REPEAT_SECONDS,
            TimeUnit.SECONDS);
    try {
      return task.run(session);
    } catch (Exception e) {
      if (expired.get()) {
        TimeoutException timeout =
            new TimeoutException("cancelled, because it did not end within " + seconds + " s");
        timeout.initCause(e);
        throw timeout;
      }
      throw e;
    } finally {
      cancels.cancel(false);
      clock.shutdown();
    }
  }
}
