package io.weft.tests.support;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.FetchFailed;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;

/**
 * Records the scheduler's events until it is closed. Every query first waits until all events have
 * arrived.
 */
public final class TaskLog extends SparkListener implements AutoCloseable {
  private static final long LIMIT_MILLIS = TimeUnit.MINUTES.toMillis(3);

  private final SparkContext context;
  private final Map<Long, String> executors = new ConcurrentHashMap<>();
  private final List<SparkListenerTaskEnd> ends = new CopyOnWriteArrayList<>();

  private TaskLog(SparkContext context) {
    this.context = context;
  }

  /** Starts to listen. */
  public static TaskLog open(SparkContext context) {
    TaskLog log = new TaskLog(context);
    context.addSparkListener(log);
    return log;
  }

  @Override
  public void onTaskStart(SparkListenerTaskStart start) {
    executors.put(start.taskInfo().taskId(), start.taskInfo().executorId());
  }

  @Override
  public void onTaskEnd(SparkListenerTaskEnd end) {
    ends.add(end);
  }

  /** The executor of a task attempt. */
  public String executorOf(long attempt) {
    awaitEvents();
    return executors.get(attempt);
  }

  /** The executor of the last map task to end with this number in its stage. */
  public String executorOfMapTask(int number) {
    awaitEvents();
    return ends.stream()
        .filter(end -> end.taskType().equals("ShuffleMapTask"))
        .map(SparkListenerTaskEnd::taskInfo)
        .filter(task -> task.index() == number && task.successful())
        .reduce((before, last) -> last)
        .orElseThrow(() -> new AssertionError("no map task " + number + " has ended"))
        .executorId();
  }

  /** Number of map tasks that ended in any way. */
  public long mapTasks() {
    awaitEvents();
    return ends.stream().filter(end -> end.taskType().equals("ShuffleMapTask")).count();
  }

  /** The executors whose blocks could not be fetched, one for each such task. */
  public List<String> fetchFailures() {
    awaitEvents();
    return ends.stream()
        .map(SparkListenerTaskEnd::reason)
        .filter(FetchFailed.class::isInstance)
        .map(reason -> ((FetchFailed) reason).bmAddress())
        .map(address -> address == null ? "none" : address.executorId())
        .toList();
  }

  private void awaitEvents() {
    try {
      context.listenerBus().waitUntilEmpty(LIMIT_MILLIS);
    } catch (TimeoutException e) {
      throw new AssertionError("Spark's listeners are late", e);
    }
  }

  @Override
  public void close() {
    context.removeSparkListener(this);
  }
}
