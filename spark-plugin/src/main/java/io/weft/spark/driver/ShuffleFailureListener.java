package io.weft.spark.driver;

import io.weft.shuffle.peer.LateLookupException;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.ExceptionFailure;
import org.apache.spark.FetchFailed;
import org.apache.spark.Success$;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorMetricsUpdate;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/**
 * Counts failures of tasks that Weft's writers and readers caused. A failure counts when its
 * executor shows a sign of life after it: a heartbeat or a successful task. If the executor is
 * removed instead, its end was the reason.
 *
 * <p>Called on the thread of Spark's listeners, one event at a time.
 */
public final class ShuffleFailureListener extends SparkListener {
  /** The frame that throws an exception, below frames of the JDK. */
  private static final Pattern THROWN =
      Pattern.compile(
          "(?m)^(?!\\s*at )[^\\n]*\\n(?:\\s*at (?:java|jdk|sun)[^\\n]*\\n)*+\\s*at (\\S+)");

  /** The task's writer or reader must be on the stack, because the arena also serves others. */
  private static final Pattern SHUFFLE = Pattern.compile("at io\\.weft\\.spark\\.(shuffle|sql)\\.");

  /**
   * Code of shuffles. Tensors, collectives and functions on batches refuse what users pass, and
   * Java's serialization fails in their objects.
   */
  private static final Pattern OURS =
      Pattern.compile(
          "io\\.weft\\.(shuffle|memory|spark\\.shuffle(?!\\.JavaStream)|spark\\.columns)\\..*");

  /** Failures of executors that ended before are never counted, and would stay. */
  private static final int MAX_OPEN = 1000;

  private final Consumer<String> counted;
  private final Map<Failure, String> open = newestOf(MAX_OPEN);

  /**
   * Creates a listener.
   *
   * @param counted receives a line about each failure that counts
   */
  public ShuffleFailureListener(Consumer<String> counted) {
    this.counted = counted;
  }

  /**
   * A failure to be counted once.
   *
   * @param executor that has the block, or that could not write
   * @param task number of the writing task; -1 for a fetch
   */
  private record Failure(String executor, int stage, int attempt, long task) {}

  private static Map<Failure, String> newestOf(int size) {
    return new LinkedHashMap<>() {
      @Override
      protected boolean removeEldestEntry(Map.Entry<Failure, String> eldest) {
        return size() > size;
      }
    };
  }

  @Override
  public void onTaskEnd(SparkListenerTaskEnd end) {
    if (end.reason() instanceof FetchFailed failed) {
      if (failed.bmAddress() != null && isOfWeft(failed.message())) {
        open(failed.bmAddress().executorId(), end, -1, failed.message());
      }
    } else if (end.reason() instanceof ExceptionFailure failed) {
      if (isOfWeft(failed.fullStackTrace())) {
        open(end.taskInfo().executorId(), end, end.taskInfo().taskId(), failed.fullStackTrace());
      }
    } else if (end.reason() instanceof Success$) {
      // Not a resubmitted task: its executor may be lost.
      alive(end.taskInfo().executorId());
    }
  }

  private void open(String executor, SparkListenerTaskEnd end, long task, String trace) {
    Failure failure = new Failure(executor, end.stageId(), end.stageAttemptId(), task);
    open.putIfAbsent(failure, trace.lines().findFirst().orElse(""));
  }

  @Override
  public void onExecutorMetricsUpdate(SparkListenerExecutorMetricsUpdate heartbeat) {
    alive(heartbeat.execId());
  }

  /** Counts the failures of an executor that still works. */
  private void alive(String executor) {
    Iterator<Map.Entry<Failure, String>> failures = open.entrySet().iterator();
    while (failures.hasNext()) {
      Map.Entry<Failure, String> failure = failures.next();
      if (failure.getKey().executor().equals(executor)) {
        failures.remove();
        counted.accept("executor " + executor + ": " + failure.getValue());
      }
    }
  }

  @Override
  public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
    open.keySet().removeIf(failure -> failure.executor().equals(removed.executorId()));
  }

  /**
   * Whether an exception of this stack trace, or a cause of it, was thrown by Weft's code in a
   * shuffle. An exception of the user's code that only passed through a writer is not, nor is a
   * late driver.
   */
  static boolean isOfWeft(String trace) {
    if (!SHUFFLE.matcher(trace).find() || trace.contains(LateLookupException.class.getName())) {
      return false;
    }
    Matcher thrown = THROWN.matcher(trace);
    while (thrown.find()) {
      if (OURS.matcher(thrown.group(1)).matches()) {
        return true;
      }
    }
    return false;
  }
}
