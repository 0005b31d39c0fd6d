package io.weft.spark.driver;

import io.weft.spark.driver.ActivityRecorder.ActivityListener.Shuffles;
import io.weft.spark.shuffle.ExchangeDependency;
import io.weft.spark.shuffle.ShuffleRoutes.RouteTaken;
import io.weft.spark.ui.Activity;
import io.weft.spark.ui.EventLogPosts;
import io.weft.spark.ui.ShuffleTable.StageAttempt;
import io.weft.spark.ui.TabContents;
import io.weft.spark.ui.WeftTab;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.IntFunction;
import org.apache.spark.SparkContext;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.AccumulableInfo;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.StageInfo;
import scala.jdk.javaapi.CollectionConverters;

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

  /**
   * Adds the shuffles and stages of jobs to the state of the Weft tab, and posts changes to the
   * event log. Its own state is that of running jobs.
   *
   * <p>Called on the thread of Spark's listeners, one event at a time.
   */
  static final class ActivityListener extends SparkListener {
    private final Activity activity;
    private final Shuffles shuffles;
    private final Runnable changed;

    /** The shuffle that a stage writes, for stages of running jobs. */
    private final Map<Integer, Integer> written = new HashMap<>();

    private final Map<Integer, Set<Integer>> stagesOfJobs = new HashMap<>();

    /**
     * What the driver knows of shuffles.
     *
     * @param routes returns the route of a shuffle that was not asked for before
     * @param sizes of the partitions
     */
    record Shuffles(IntFunction<Optional<RouteTaken>> routes, Sizes sizes) {}

    /** Returns the sizes of a shuffle's partitions, if they are known. */
    interface Sizes {
      Optional<long[]> of(int shuffle, int partitions);
    }

    /**
     * Creates a listener.
     *
     * @param activity that it adds to
     * @param changed called after changes
     */
    ActivityListener(Activity activity, Shuffles shuffles, Runnable changed) {
      this.activity = activity;
      this.shuffles = shuffles;
      this.changed = changed;
    }

    @Override
    public void onJobStart(SparkListenerJobStart job) {
      Set<Integer> stages = new HashSet<>();
      for (StageInfo stage : CollectionConverters.asJava(job.stageInfos())) {
        if (stage.shuffleDepId().isDefined()) {
          written.put(stage.stageId(), (Integer) stage.shuffleDepId().get());
          stages.add(stage.stageId());
        }
      }
      stagesOfJobs.put(job.jobId(), stages);
    }

    @Override
    public void onJobEnd(SparkListenerJobEnd job) {
      Set<Integer> stages = stagesOfJobs.remove(job.jobId());
      if (stages != null) {
        // Running jobs may share stages.
        stagesOfJobs.values().forEach(stages::removeAll);
        written.keySet().removeAll(stages);
      }
      changed.run();
    }

    @Override
    public void onStageSubmitted(SparkListenerStageSubmitted submitted) {
      StageInfo stage = submitted.stageInfo();
      if (stage.shuffleDepId().isDefined()) {
        see((Integer) stage.shuffleDepId().get());
      }
      for (Object parent : CollectionConverters.asJava(stage.parentIds())) {
        Integer shuffle = written.get((Integer) parent);
        if (shuffle != null) {
          activity.shuffles().read(shuffle, stage.stageId());
        }
      }
    }

    /** Adds a shuffle with its route when its first stage starts. */
    private void see(int shuffle) {
      if (activity.shuffles().isRouted(shuffle)) {
        return;
      }
      RouteTaken route = shuffles.routes().apply(shuffle).orElse(new RouteTaken("", "", 0));
      activity.shuffles().routed(shuffle, route);
      if (route.name().equals(RouteTaken.SORT)) {
        activity.fellBack(route.why());
      }
    }

    @Override
    public void onStageCompleted(SparkListenerStageCompleted completed) {
      StageInfo stage = completed.stageInfo();
      if (stage.shuffleDepId().isEmpty()) {
        return;
      }
      int shuffle = (Integer) stage.shuffleDepId().get();
      see(shuffle);
      activity.shuffles().wrote(shuffle, attempt(stage));
      if (stage.failureReason().isEmpty()) {
        int partitions = activity.shuffles().partitions(shuffle);
        shuffles
            .sizes()
            .of(shuffle, partitions)
            .ifPresent(sizes -> activity.shuffles().sized(shuffle, sizes));
      }
      changed.run();
    }

    private static StageAttempt attempt(StageInfo stage) {
      TaskMetrics metrics = stage.taskMetrics();
      return new StageAttempt(
          stage.stageId(),
          stage.failureReason().isEmpty(),
          stage.numTasks(),
          metrics.shuffleWriteMetrics().recordsWritten(),
          batches(stage),
          metrics.shuffleWriteMetrics().bytesWritten());
    }

    /**
     * The batches that successful tasks of all attempts so far wrote, because Spark gives the
     * driver's total; 0 if they wrote records.
     */
    private static long batches(StageInfo stage) {
      for (AccumulableInfo one : CollectionConverters.asJava(stage.accumulables().values())) {
        if (one.name().contains(ExchangeDependency.BATCHES_WRITTEN)
            && one.value().isDefined()
            && one.value().get() instanceof Long batches) {
          return batches;
        }
      }
      return 0;
    }
  }
}
