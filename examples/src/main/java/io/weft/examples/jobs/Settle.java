package io.weft.examples.jobs;

import io.weft.examples.side.SideTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.SparkSession;

/**
 * Releases finished shuffles: Spark unregisters a shuffle when the driver's garbage collector finds
 * that it is unreachable. Returns the number of shuffles left, which is 0 unless the timeout
 * expired.
 */
public record Settle() implements SideTask<Integer> {
  private static final long DEADLINE_NANOS = TimeUnit.SECONDS.toNanos(3);
  private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

  @Override
  public Integer run(SparkSession session) {
    long deadline = System.nanoTime() + DEADLINE_NANOS;
    System.gc();
    while (shuffles() > 0 && System.nanoTime() < deadline) {
      LockSupport.parkNanos(PAUSE_NANOS);
    }
    return shuffles();
  }

  private static int shuffles() {
    return ((MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker()).shuffleStatuses().size();
  }
}
