package io.weft.tests.workload;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.api.java.UDF1;

/**
 * A function of SQL that returns its argument, and pauses at the first call in a task, which has
 * its own instance. Without a pause, short stages end before a kill does.
 */
public final class Pause implements UDF1<Long, Long> {
  private static final long serialVersionUID = 1L;

  private final int millis;
  private transient boolean paused;

  /** A pause of this time. */
  public Pause(int millis) {
    this.millis = millis;
  }

  /** The same rows, with such a pause of each task that computes them. */
  public static JavaRDD<String> before(JavaRDD<String> rows, int millis) {
    return rows.mapPartitions(
        partition -> {
          pause(millis);
          return partition;
        });
  }

  @Override
  public Long call(Long argument) {
    if (!paused) {
      paused = true;
      pause(millis);
    }
    return argument;
  }

  private static void pause(int millis) {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
    while (System.nanoTime() < end && !Thread.currentThread().isInterrupted()) {
      LockSupport.parkNanos(end - System.nanoTime());
    }
  }
}
