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
 * Waits until all ranks of a feed can run at the same time. An application may be younger than its
 * executors' start takes, and Spark, which finds too few of them when the ranks are to start, looks
 * again only every 15 s. Stateless.
 */
final class FeedCores {
  /** Executors that are on their way register within this time. */
  static final Duration PATIENCE = Duration.ofSeconds(10);

  private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

  private FeedCores() {}

  /** As below, for the tasks that an application's executors can run at a time. */
  static Optional<String> await(SparkContext context, int ranks, Duration patience) {
    ResourceProfile profile = context.resourceProfileManager().defaultResourceProfile();
    return await(() -> context.maxNumConcurrentTasks(profile), ranks, patience, context.conf());
  }

  /**
   * Waits for cores, or for the time to pass, or for an interrupt, which is left to be seen.
   *
   * @param cores how many tasks the executors there are can run at a time
   * @return a warning if there are too few
   */
  static Optional<String> await(IntSupplier cores, int ranks, Duration patience, SparkConf conf) {
    long start = System.nanoTime();
    int now = cores.getAsInt();
    while (now < ranks
        && System.nanoTime() - start < patience.toNanos()
        && !Thread.currentThread().isInterrupted()) {
      LockSupport.parkNanos(PAUSE_NANOS);
      now = cores.getAsInt();
    }
    return now < ranks ? Optional.of(warning(now, ranks, conf)) : Optional.empty();
  }

  private static String warning(int cores, int ranks, SparkConf conf) {
    String settings = "spark.scheduler.barrier.maxConcurrentTasksCheck.";
    return "A feed's %d ranks run at the same time, and the executors there are can run %d tasks: Spark waits for more, %s times for %s, and then fails the job"
        .formatted(
            ranks,
            cores,
            conf.get(settings + "maxFailures", "40"),
            conf.get(settings + "interval", "15s"));
  }
}
