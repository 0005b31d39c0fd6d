package io.weft.spark.feed;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntSupplier;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.resource.ResourceProfile;

/**
 * Waits until all ranks of a feed can run at the same time. Executors may still be starting when a
 * feed begins, and Spark checks for free cores only every 15 s. Stateless.
 */
final class FeedCores {
  /** Time for starting executors to register. */
  static final Duration REGISTRATION_TIMEOUT = Duration.ofSeconds(10);

  private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

  private FeedCores() {}

  /** Waits as below, for the number of tasks that an application's executors can run at a time. */
  static Optional<String> await(SparkContext context, int ranks, Duration timeout) {
    ResourceProfile profile = context.resourceProfileManager().defaultResourceProfile();
    return await(() -> context.maxNumConcurrentTasks(profile), ranks, timeout, context.conf());
  }

  /**
   * Waits for cores until a timeout or an interrupt; it leaves the interrupt flag set.
   *
   * @param cores how many tasks the present executors can run at a time
   * @return a warning if there are too few cores
   */
  static Optional<String> await(IntSupplier cores, int ranks, Duration timeout, SparkConf conf) {
    long start = System.nanoTime();
    int now = cores.getAsInt();
    while (now < ranks
        && System.nanoTime() - start < timeout.toNanos()
        && !Thread.currentThread().isInterrupted()) {
      LockSupport.parkNanos(PAUSE_NANOS);
      now = cores.getAsInt();
    }
    return now < ranks ? Optional.of(warning(now, ranks, conf)) : Optional.empty();
  }

  private static String warning(int cores, int ranks, SparkConf conf) {
    String settings = "spark.scheduler.barrier.maxConcurrentTasksCheck.";
    return "A feed's %d ranks run at the same time, and the present executors can run %d tasks: Spark waits for more, %s times for %s, and then fails the job"
        .formatted(
            ranks,
            cores,
            conf.get(settings + "maxFailures", "40"),
            conf.get(settings + "interval", "15s"));
  }
}
