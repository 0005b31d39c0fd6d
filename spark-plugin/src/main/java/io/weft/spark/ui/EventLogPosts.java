package io.weft.spark.ui;

import java.time.Duration;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/**
 * Posts what has changed in the Weft tab to Spark's event log. The pause between two posts doubles
 * from 5 seconds to 10 minutes. Executors are in a post after 1, 2, 4 minutes and so on, and in the
 * last one. So the log grows with the shuffles, and little with the time.
 *
 * <p>Thread-safe.
 */
public final class EventLogPosts {
  private static final long FIRST_PAUSE = Duration.ofSeconds(5).toMillis();
  private static final long LAST_PAUSE = Duration.ofMinutes(10).toMillis();
  private static final long FIRST_EXECUTORS = Duration.ofMinutes(1).toMillis();

  private final Activity activity;
  private final Supplier<Overview> overview;
  private final Consumer<ActivityEvent> log;
  private final LongSupplier clock;
  private final long start;
  private long pause = FIRST_PAUSE;
  private long executorsPause = FIRST_EXECUTORS;
  private long posted;

  /**
   * Starts without a post.
   *
   * @param log receives the events
   * @param clock milliseconds
   */
  public EventLogPosts(
      Activity activity,
      Supplier<Overview> overview,
      Consumer<ActivityEvent> log,
      LongSupplier clock) {
    this.activity = activity;
    this.overview = overview;
    this.log = log;
    this.clock = clock;
    this.start = clock.getAsLong();
    this.posted = start;
  }

  /** Posts changes, if the pause is over. */
  public synchronized void postIfDue() {
    long now = clock.getAsLong();
    if (now - posted >= pause) {
      boolean withExecutors = now - start >= executorsPause;
      post(withExecutors);
      posted = now;
      pause = Math.min(2 * pause, LAST_PAUSE);
      if (withExecutors) {
        executorsPause = 2 * (now - start);
      }
    }
  }

  /** Posts all changes, at the end of the application. */
  public synchronized void postLast() {
    post(true);
  }

  private void post(boolean withExecutors) {
    log.accept(activity.takeChanges(overview.get(), withExecutors));
  }
}
