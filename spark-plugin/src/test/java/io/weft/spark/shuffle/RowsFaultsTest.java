package io.weft.spark.shuffle;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.LocalSpark;
import io.weft.spark.runtime.WeftExecutor;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.apache.spark.FetchFailed;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.Platform;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Failing tasks, cancelled jobs, lost and damaged blocks. */
class RowsFaultsTest {
  private static final long ROWS = 10_000;
  private static final Duration TIMEOUT = Duration.ofMinutes(1);

  private LocalSpark spark;

  @BeforeEach
  void start() {
    spark = LocalSpark.start(Map.of("spark.sql.adaptive.enabled", "false"));
    Pause.arm();
    spark.session().udf().register("pause_at", new Pause(), DataTypes.LongType);
  }

  @AfterEach
  void stop() {
    Pause.release();
    spark.close();
  }

  @Test
  void aFailedMapTaskFreesItsChunks() {
    Dataset<Row> rows = rows("if(id = 9999, raise_error('no'), id) id");
    assertThatThrownBy(() -> rows.queryExecution().toRdd().count()).hasStackTraceContaining("no");
    assertOnlyPublishedIsUsed(rows);
  }

  @Test
  void aCancelledMapTaskFreesItsChunks() throws InterruptedException {
    Dataset<Row> rows = rows("pause_at(id) id");
    CompletableFuture<Long> job = inGroup(() -> rows.queryExecution().toRdd().count());
    Pause.awaitReached();
    assertThat(used()).isPositive();
    spark.session().sparkContext().cancelJobGroup("group", "the test says so");
    assertThat(job).failsWithin(TIMEOUT);
    assertOnlyPublishedIsUsed(rows);
  }

  /** A task may take long for each row, and Spark does not interrupt it by default. */
  @Test
  void aCancelledReaderEndsWithinAFewRows() throws InterruptedException {
    Dataset<Row> rows = rows("id");
    assertThat(rows.queryExecution().toRdd().count()).isEqualTo(ROWS);
    CompletableFuture<Long> job =
        CompletableFuture.supplyAsync(
            () -> {
              spark.session().sparkContext().setJobGroup("group", "a job of the test", false);
              return rows.queryExecution().toRdd().toJavaRDD().filter(new AfterKill()).count();
            });
    Pause.awaitReached();
    spark.session().sparkContext().cancelJobGroup("group", "the test says so");
    assertThat(job).failsWithin(TIMEOUT);
    await().atMost(TIMEOUT).until(this::areNoTasksRunning);
    // Two tasks run at a time.
    assertThat(AfterKill.ROWS_READ).hasValueBetween(1, 40);
  }

  @Test
  void anUnregisteredShuffleIsFreed() {
    Dataset<Row> rows = rows("id");
    assertThat(rows.queryExecution().toRdd().count()).isEqualTo(ROWS);
    assertThat(used()).isPositive();
    assertOnlyPublishedIsUsed(rows);
  }

  @Test
  void aShuffleRemovedDuringItsWriteIsNotPublished() throws InterruptedException {
    Dataset<Row> rows = rows("pause_at(id) id");
    CompletableFuture<Long> job = inGroup(() -> rows.queryExecution().toRdd().count());
    Pause.awaitReached();
    SparkEnv.get().shuffleManager().unregisterShuffle(shuffleId(rows));
    Pause.release();
    assertThat(job).failsWithin(TIMEOUT);
    assertOnlyPublishedIsUsed(rows);
  }

  @Test
  void aLostMapOutputIsComputedAgain() {
    Dataset<Row> rows = rows("id");
    assertThat(rows.queryExecution().toRdd().count()).isEqualTo(ROWS);
    WeftExecutor.exchange().removeMapOutput(keys(rows).get(1));
    assertComputedAgain(rows);
  }

  @Test
  void aDamagedChunkIsAFetchFailureNotAWrongAnswer() throws Exception {
    Dataset<Row> rows = rows("id");
    assertThat(rows.queryExecution().toRdd().count()).isEqualTo(ROWS);
    damage(keys(rows).get(2));
    assertComputedAgain(rows);
  }

  @Test
  void aContextStoppedDuringAReadDoesNoHarm() throws InterruptedException {
    Dataset<Row> rows = rows("id").selectExpr("pause_at(id) id");
    CompletableFuture<Long> job = inGroup(() -> rows.queryExecution().toRdd().count());
    Pause.awaitReached();
    spark.close();
    Pause.release();
    assertThat(job).failsWithin(TIMEOUT);
    assertThat(WeftExecutor.current()).isEmpty();
  }

  private Dataset<Row> rows(String expression) {
    return spark
        .session()
        .range(0, ROWS, 1, 4)
        .selectExpr(expression, "repeat('x', 100) s")
        .repartition(6, col("id"));
  }

  private CompletableFuture<Long> inGroup(Supplier<Long> job) {
    return CompletableFuture.supplyAsync(
        () -> {
          spark.session().sparkContext().setJobGroup("group", "a job of the test", true);
          return job.get();
        });
  }

  private boolean areNoTasksRunning() {
    return Arrays.stream(spark.session().sparkContext().statusTracker().getExecutorInfos())
        .allMatch(executor -> executor.numRunningTasks() == 0);
  }

  private static long used() {
    return LocalSpark.statistics().arena().usedBytes();
  }

  private static void assertNothingUsed() {
    await().atMost(TIMEOUT).untilAsserted(() -> assertThat(used()).isZero());
  }

  /** Removing a shuffle frees published outputs, but not memory that a task leaked. */
  private static void assertOnlyPublishedIsUsed(Dataset<Row> rows) {
    SparkEnv.get().blockManager().master().removeShuffle(shuffleId(rows), true);
    assertNothingUsed();
  }

  private static int shuffleId(Dataset<Row> rows) {
    return ((ShuffleExchangeExec)
            rows.queryExecution()
                .executedPlan()
                .find(node -> node instanceof ShuffleExchangeExec)
                .get())
        .shuffleDependency()
        .shuffleId();
  }

  private static List<BlockKey> keys(Dataset<Row> rows) {
    int shuffleId = shuffleId(rows);
    MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
    return Arrays.stream(tracker.shuffleStatuses().apply(shuffleId).mapStatuses())
        .map(MapStatus::mapId)
        .map(mapId -> new BlockKey(shuffleId, mapId))
        .toList();
  }

  /** Overwrites the size of the first row of a map output. */
  private static void damage(BlockKey key) throws Exception {
    BlockRequest request = new BlockRequest("driver", key, 0, 0, 6, 1);
    try (ChunkReader chunks = WeftExecutor.exchange().read(List.of(request), FetchListener.NONE)) {
      assertThat(chunks.next()).isTrue();
      Platform.putLong(null, chunks.address(), 1L << 40);
    }
  }

  private void assertComputedAgain(Dataset<Row> rows) {
    FetchFailures failures = new FetchFailures();
    spark.session().sparkContext().addSparkListener(failures);
    assertThat(rows.queryExecution().toRdd().count()).isEqualTo(ROWS);
    await().atMost(TIMEOUT).untilAsserted(() -> assertThat(failures.count).hasPositiveValue());
  }

  private static final class FetchFailures extends SparkListener {
    private final AtomicInteger count = new AtomicInteger();

    @Override
    public void onTaskEnd(SparkListenerTaskEnd end) {
      if (end.reason() instanceof FetchFailed) {
        count.incrementAndGet();
      }
    }
  }

  /** Waits in the first rows of tasks until these are killed. */
  private static final class AfterKill implements Function<InternalRow, Boolean> {
    private static final long serialVersionUID = 1L;
    private static final AtomicInteger ROWS_READ = new AtomicInteger();

    @Override
    public Boolean call(InternalRow row) {
      ROWS_READ.incrementAndGet();
      Pause.reached.countDown();
      await().atMost(TIMEOUT).until(TaskContext.get()::isInterrupted);
      return true;
    }
  }

  /** Blocks a task in the middle of its rows. */
  private static final class Pause implements UDF1<Long, Long> {
    private static final long serialVersionUID = 1L;
    private static final long AT = 1000;

    private static volatile CountDownLatch reached;
    private static volatile CountDownLatch released;

    static void arm() {
      reached = new CountDownLatch(1);
      released = new CountDownLatch(1);
    }

    static void awaitReached() throws InterruptedException {
      assertThat(reached.await(TIMEOUT.toMillis(), TimeUnit.MILLISECONDS)).isTrue();
    }

    static void release() {
      released.countDown();
    }

    @Override
    public Long call(Long id) throws InterruptedException {
      if (id == AT) {
        reached.countDown();
        assertThat(released.await(TIMEOUT.toMillis(), TimeUnit.MILLISECONDS)).isTrue();
      }
      return id;
    }
  }
}
