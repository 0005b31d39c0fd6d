package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.weft.spark.LocalSpark;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.SparkStatusTracker;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The thread of a feed is interrupted, as by the cancel button of a notebook. */
class FeedInterruptTest {
  private static final Duration TIMEOUT = Duration.ofMinutes(1);

  private static volatile CountDownLatch reached;
  private static volatile CountDownLatch released;

  private LocalSpark spark;

  @BeforeEach
  void start() {
    reached = new CountDownLatch(1);
    released = new CountDownLatch(1);
    spark = LocalSpark.start(Map.of());
  }

  @AfterEach
  void stop() {
    released.countDown();
    spark.close();
  }

  @Test
  void duringTheMapSide() throws InterruptedException {
    assertNothingIsLeft(() -> feed(FeedInterruptTest::pauseAt).train(task -> 0));
  }

  @Test
  void duringTheMapSideOfAnExport() throws InterruptedException {
    assertNothingIsLeft(() -> feed(FeedInterruptTest::pauseAt).export().close());
  }

  @Test
  void whileRanksRun() throws InterruptedException {
    assertNothingIsLeft(() -> feed(id -> true).train(task -> pauseAt(50L)));
  }

  @Test
  void beforeItsFirstJob() {
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> feed(id -> true).train(task -> 0))
        .isInstanceOf(InterruptedException.class);
    assertThat(spark.session().sparkContext().statusTracker().getActiveJobIds()).isEmpty();
    assertThat(feed(id -> true).train(task -> task.rank())).containsExactly(0, 1);
  }

  /** The tasks do not react to their kill. The rows are freed after they have ended. */
  private void assertNothingIsLeft(Runnable feed) throws InterruptedException {
    AtomicReference<Throwable> failure = new AtomicReference<>();
    Thread driver = new Thread(feed, "a feed of the test");
    driver.setUncaughtExceptionHandler((thread, thrown) -> failure.set(thrown));
    driver.start();
    assertThat(reached.await(TIMEOUT.toMillis(), TimeUnit.MILLISECONDS)).isTrue();
    driver.interrupt();
    driver.join(TIMEOUT.toMillis());
    assertThat(failure.get()).isInstanceOf(InterruptedException.class);
    SparkStatusTracker status = spark.session().sparkContext().statusTracker();
    await("the end of the job").atMost(TIMEOUT).until(() -> status.getActiveJobIds().length == 0);
    released.countDown();
    await("the end of its tasks").atMost(TIMEOUT).until(() -> areNoTasksRunning(status));
    await("free memory")
        .atMost(TIMEOUT)
        .untilAsserted(
            () -> {
              System.gc();
              assertThat(LocalSpark.statistics().arena().usedBytes()).isZero();
            });
    assertThat(feed(id -> true).train(task -> task.rank())).containsExactly(0, 1);
  }

  private static boolean areNoTasksRunning(SparkStatusTracker status) {
    return Arrays.stream(status.getExecutorInfos())
        .allMatch(executor -> executor.numRunningTasks() == 0);
  }

  private WeftFeed feed(UDF1<Long, Boolean> predicate) {
    Dataset<Row> rows = FeedData.rows(spark.session(), 100, 2);
    var filter = functions.udf(predicate, DataTypes.BooleanType).asNondeterministic();
    return WeftFeed.shards(rows.filter(filter.apply(functions.col("id"))), 2)
        .batchRows(10)
        .lastBatch(LastBatch.KEEP);
  }

  private static boolean pauseAt(Long id) throws InterruptedException {
    if (id == 50) {
      reached.countDown();
      assertThat(released.await(TIMEOUT.toMillis(), TimeUnit.MILLISECONDS)).isTrue();
    }
    return true;
  }
}
