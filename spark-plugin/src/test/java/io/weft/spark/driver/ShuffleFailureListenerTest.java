package io.weft.spark.driver;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.ExceptionFailure;
import org.apache.spark.FetchFailed;
import org.apache.spark.Success$;
import org.apache.spark.TaskEndReason;
import org.apache.spark.executor.ExecutorMetrics;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListenerExecutorMetricsUpdate;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.scheduler.TaskLocality;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.Test;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

class ShuffleFailureListenerTest {
  private static final String WEFT =
      "org.apache.spark.shuffle.FetchFailedException: missing\n"
          + "\tat io.weft.spark.shuffle.ShuffleBlocks.failure(ShuffleBlocks.java:120)\n"
          + "\tat org.apache.spark.scheduler.Task.run(Task.scala:141)\n"
          + "Caused by: java.io.IOException: gone\n"
          + "\tat java.base/sun.nio.ch.FileChannelImpl.map(FileChannelImpl.java:1)\n"
          + "\tat io.weft.shuffle.store.PeerIndex.open(PeerIndex.java:1)\n";

  private final List<String> counted = new ArrayList<>();
  private final ShuffleFailureListener listener = new ShuffleFailureListener(counted::add);

  @Test
  void aFetchCountsOnceWhenItsExecutorShowsASignOfLife() {
    end("1", 7, fetchFailed("2", WEFT));
    end("3", 8, fetchFailed("2", WEFT));
    heartbeat("1");
    end("1", 9, success());
    assertThat(counted).isEmpty();
    heartbeat("2");
    heartbeat("2");
    assertThat(counted).singleElement().asString().contains("executor 2", "missing");
  }

  @Test
  void aSuccessfulTaskIsASignOfLife() {
    end("1", 7, fetchFailed("2", WEFT));
    end("2", 8, success());
    assertThat(counted).hasSize(1);
  }

  @Test
  void theEndOfAnExecutorDoesNotCount() {
    end("1", 7, fetchFailed("2", WEFT));
    listener.onExecutorRemoved(new SparkListenerExecutorRemoved(0, "2", "gone"));
    heartbeat("2");
    assertThat(counted).isEmpty();
  }

  @Test
  void writesCountOneByOne() {
    String full =
        "java.io.IOException: No space left on device\n"
            + "\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)\n"
            + "\tat io.weft.memory.SegmentFolder.reserve(SegmentFolder.java:1)\n"
            + "\tat io.weft.spark.shuffle.RowsWriter.append(RowsWriter.java:1)\n";
    end("1", 7, failed(full));
    end("1", 8, failed(full));
    heartbeat("1");
    assertThat(counted).hasSize(2);
  }

  @Test
  void errorsOfOthersDoNotCount() {
    String users =
        "java.lang.IllegalStateException: no\n"
            + "\tat java.base/java.util.Optional.orElseThrow(Optional.java:1)\n"
            + "\tat org.example.Job.call(Job.java:1)\n"
            + "\tat io.weft.spark.shuffle.RowsWriter.rows(RowsWriter.java:1)\n";
    String sparks =
        "org.apache.spark.shuffle.FetchFailedException: missing\n"
            + "\tat org.apache.spark.errors.SparkCoreErrors$.fetchFailedError(E.scala:1)\n"
            + "\tat io.weft.spark.shuffle.RowsWriter.rows(RowsWriter.java:1)\n";
    String collectives =
        "io.weft.collectives.CollectiveException: late\n"
            + "\tat io.weft.collectives.host.HostCommunicator.await(HostCommunicator.java:1)\n";
    String closed =
        "java.lang.IllegalStateException: closed\n"
            + "\tat io.weft.tensor.Tensor.buffer(Tensor.java:1)\n"
            + "\tat io.weft.spark.shuffle.KryoWriter.append(KryoWriter.java:1)\n";
    String serialization =
        "java.util.ConcurrentModificationException\n"
            + "\tat java.base/java.util.HashMap.internalWriteEntries(HashMap.java:1)\n"
            + "\tat io.weft.spark.shuffle.JavaStream.writeObject(JavaStream.java:1)\n"
            + "\tat io.weft.spark.shuffle.StreamWriter.append(StreamWriter.java:1)\n";
    for (String trace : List.of(users, sparks, collectives, closed, serialization)) {
      end("1", 7, failed(trace));
      end("1", 8, fetchFailed("1", trace));
    }
    heartbeat("1");
    assertThat(counted).isEmpty();
  }

  private void heartbeat(String executor) {
    listener.onExecutorMetricsUpdate(
        new SparkListenerExecutorMetricsUpdate(executor, none(), Map$.MODULE$.empty()));
  }

  private void end(String executor, long task, TaskEndReason reason) {
    TaskInfo info = new TaskInfo(task, 0, 0, 0, 1, executor, "host", TaskLocality.ANY(), false);
    info.markFinished(
        reason == success()
            ? org.apache.spark.TaskState.FINISHED()
            : org.apache.spark.TaskState.FAILED(),
        2);
    listener.onTaskEnd(
        new SparkListenerTaskEnd(
            4, 0, "ShuffleMapTask", reason, info, new ExecutorMetrics(), new TaskMetrics()));
  }

  private static TaskEndReason success() {
    return Success$.MODULE$;
  }

  private static TaskEndReason fetchFailed(String executor, String trace) {
    return new FetchFailed(
        BlockManagerId.apply(executor, "host", 1, Option.empty()), 5, 6, 0, 0, trace);
  }

  private static TaskEndReason failed(String trace) {
    return new ExceptionFailure(
        "java.io.IOException",
        "",
        new StackTraceElement[0],
        trace,
        Option.empty(),
        none(),
        none(),
        none());
  }

  private static <T> Seq<T> none() {
    return CollectionConverters.asScala(List.<T>of()).toSeq();
  }
}
