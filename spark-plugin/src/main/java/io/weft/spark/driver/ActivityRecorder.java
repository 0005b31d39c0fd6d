package io.weft.spark.driver;

import io.weft.spark.driver.ActivityListener.Shuffles;
import io.weft.spark.ui.EventLogPosts;
import io.weft.spark.ui.TabContents;
import io.weft.spark.ui.WeftTab;
import java.time.Duration;
import org.apache.spark.SparkContext;

/**
 * Records what Weft does in an application, for the Weft tab and, if events are logged, for the
 * history server. For the thread that starts and stops the application.
 */
public final class ActivityRecorder implements AutoCloseable {
  /** How long the end of an application waits for the last reports of its executors. */
  private static final Duration LAST_REPORTS = Duration.ofSeconds(1);

  private final DriverState state;

  /** Null if events are not logged. */
  private final EventLogPosts posts;

  private ActivityRecorder(DriverState state, EventLogPosts posts) {
    this.state = state;
    this.posts = posts;
  }

  /** Attaches the tab, if the application has a UI, and listens to its events. */
  public static ActivityRecorder start(SparkContext context, DriverState state) {
    EventLogPosts posts =
        context.conf().getBoolean("spark.eventLog.enabled", false)
            ? new EventLogPosts(
                state.activity(),
                state::overview,
                context.listenerBus()::post,
                System::currentTimeMillis)
            : null;
    if (state.activation().runs()) {
      Runnable changed = posts == null ? () -> {} : posts::postIfDue;
      Shuffles shuffles = new Shuffles(DriverState::route, DriverState::sizes);
      context.addSparkListener(new ActivityListener(state.activity(), shuffles, changed));
    }
    TabContents contents = new TabContents(state::overview, state.activity(), state.conf());
    WeftTab.attach(context, contents);
    return new ActivityRecorder(state, posts);
  }

  /**
   * Logs what is left. Spark calls plugins before it stops the listener bus. Waits for at most a
   * second, because executors report what they did last while they stop.
   */
  @Override
  public void close() {
    if (posts == null) {
      return;
    }
    try {
      state.activity().executors().awaitLast(LAST_REPORTS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    posts.postLast();
  }
}
