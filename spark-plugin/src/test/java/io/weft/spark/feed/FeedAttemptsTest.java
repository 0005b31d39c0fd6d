package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.spark.LocalSpark;
import io.weft.spark.feed.FeedReports.RankFailure;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkException;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Map tasks that run more than once. Their outputs are only reported as lost, because all is in
 * this JVM.
 */
class FeedAttemptsTest {
  private static final int ROWS = 100;

  /** Number of runs of map task 1 that have begun. */
  private static final AtomicInteger STARTS = new AtomicInteger();

  /** The driver's knowledge at the time when a rank saw another one fail. */
  private static final Queue<String> KNOWN = new ConcurrentLinkedQueue<>();

  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    spark = LocalSpark.start(Map.of("spark.master", "local[2,4]"));
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  @BeforeEach
  void noneHasStarted() {
    STARTS.set(0);
  }

  private static boolean isMapTask1() {
    return TaskContext.get() != null && TaskContext.getPartitionId() == 1;
  }

  /** A feed of two map tasks; a predicate on the id selects their rows. */
  private static WeftFeed feed(UDF1<Long, Boolean> predicate) {
    Dataset<Row> rows = FeedData.rows(spark.session(), ROWS, 2);
    var filter = functions.udf(predicate, DataTypes.BooleanType).asNondeterministic();
    return WeftFeed.shards(rows.filter(filter.apply(functions.col("id"))), 2)
        .batchRows(10)
        .lastBatch(LastBatch.KEEP);
  }

  private static List<Long> sorted(List<ArrayList<List<Long>>> fed) {
    return fed.stream().flatMap(List::stream).flatMap(List::stream).sorted().toList();
  }

  private static List<Long> range(long from, long to) {
    return LongStream.range(from, to).boxed().toList();
  }

  /** The failure comes in the middle of its third batch, when two are in the arena. */
  @Test
  void rowsOfAMapTaskThatFailedAndRanAgainAreFedOnce() {
    List<ArrayList<List<Long>>> fed =
        feed(id -> {
              if (id == 75 && TaskContext.get().attemptNumber() == 0) {
                throw new IllegalStateException("the first attempt, as the test asked");
              }
              return true;
            })
            .train(task -> FeedData.epoch(task, 0));
    assertThat(sorted(fed)).isEqualTo(range(0, ROWS));
  }

  /** Spark repeats the ranks' stage; the report of its last attempt names the function's rank. */
  @Test
  void aFunctionThatFailsIsNamedWithItsRank() {
    assertThatThrownBy(
            () ->
                feed(id -> true)
                    .train(
                        task -> {
                          if (task.rank() == 1) {
                            STARTS.incrementAndGet();
                            throw new IllegalArgumentException("label 9, as the test asked");
                          }
                          return task.steps();
                        }))
        .isInstanceOfSatisfying(
            RankFailedException.class, failed -> assertThat(failed.rank()).isEqualTo(1))
        .hasMessage(
            "The function of rank 1 of a feed failed: java.lang.IllegalArgumentException: label 9,"
                + " as the test asked")
        .cause()
        .isInstanceOf(SparkException.class);
    assertThat(STARTS).hasValue(4);
  }

  /**
   * When a rank sees another rank fail, the driver already knows of that failure. It therefore
   * names the right function, even if Spark first receives the end of the other task.
   */
  @Test
  void theDriverKnowsWhoFailedBeforeThePeersDo() {
    assertThatThrownBy(
            () ->
                feed(id -> true)
                    .train(
                        task -> {
                          Communicator ranks = task.communicator();
                          ranks.barrier();
                          if (task.rank() == 1) {
                            throw new IllegalArgumentException("label 9, as the test asked");
                          }
                          try {
                            ranks.barrier();
                          } catch (CollectiveException e) {
                            // The driver may have finished with the feed before the last report
                            // arrives.
                            if (BarrierTaskContext.get().stageAttemptNumber() < 3) {
                              KNOWN.add(knownFailures());
                            }
                            throw e;
                          }
                          return 0;
                        }))
        .isInstanceOf(RankFailedException.class);
    assertThat(KNOWN).isNotEmpty().allMatch(known -> known.contains("label 9"));
  }

  /** Of the feed whose ranks run in this JVM, which is also the driver's. */
  private static String knownFailures() {
    return IntStream.range(0, 1000)
        .mapToObj(FeedReports::of)
        .flatMap(Optional::stream)
        .flatMap(reports -> reports.decisive().stream())
        .map(RankFailure::error)
        .collect(Collectors.joining());
  }

  /** Failures that other ranks, the network or a disk caused are not failures of the function. */
  @Test
  void externalFailuresStaySparksException() {
    assertThatThrownBy(
            () ->
                feed(id -> true)
                    .train(
                        task -> {
                          throw new IOException("no room, as the test asked");
                        }))
        .isInstanceOf(SparkException.class)
        .hasStackTraceContaining("no room, as the test asked");
  }

  @Test
  void aLostMapOutputThatIsWrittenAgainChangesNothing() {
    List<ArrayList<List<Long>>> fed =
        feed(id -> true)
            .train(
                task -> {
                  loseMapOutput1InTheFirstAttempt();
                  return FeedData.epoch(task, 0);
                });
    assertThat(sorted(fed)).isEqualTo(range(0, ROWS));
  }

  /** Ids 50 to 99 first, without the last ones when the task runs again. */
  @Test
  void fewerRowsThanPlannedAreAnErrorThatNamesTheMapTask() {
    assertThatThrownBy(() -> rowsOfASecondRun(id -> id < 97))
        .hasStackTraceContaining(
            "map task 1 wrote 7 rows instead of 10 rows to chunk 2 of rank 1 when it was run"
                + " again");
  }

  @Test
  void aChunkTooFewIsAnErrorThatNamesTheMapTask() {
    assertThatThrownBy(() -> rowsOfASecondRun(id -> id < 90))
        .hasStackTraceContaining(
            "map task 1 wrote nothing instead of 10 rows to chunk 2 of rank 1");
  }

  /** In the first run only two batches, of which each rank gets one. */
  @Test
  void moreRowsThanPlannedAreAnErrorThatNamesTheMapTask() {
    assertThatThrownBy(() -> rowsOfRuns(id -> id < 70, id -> true))
        .hasStackTraceContaining("map task 1 wrote 10 rows instead of nothing to chunk 1 of rank");
  }

  /**
   * In the first run one batch, for rank 1; the plan has no reader for the second run's other
   * batch.
   */
  @Test
  void rowsForARankPlannedEmptyAreAnErrorThatNamesTheMapTask() {
    assertThatThrownBy(() -> rowsOfRuns(id -> id < 60, id -> id < 70))
        .hasStackTraceContaining("map task 1 wrote rows instead of nothing to rank 0");
  }

  private static List<ArrayList<List<Long>>> rowsOfASecondRun(UDF1<Long, Boolean> second) {
    return rowsOfRuns(id -> true, second);
  }

  private static List<ArrayList<List<Long>>> rowsOfRuns(
      UDF1<Long, Boolean> first, UDF1<Long, Boolean> second) {
    return feed(id -> {
          if (!isMapTask1()) {
            return true;
          }
          int run = id == 50 ? STARTS.incrementAndGet() : STARTS.get();
          return run == 1 ? first.call(id) : second.call(id);
        })
        .train(
            task -> {
              loseMapOutput1InTheFirstAttempt();
              return FeedData.epoch(task, 0);
            });
  }

  /** Simulates the loss of its executor: Spark runs the map task again, and then the ranks. */
  private static void loseMapOutput1InTheFirstAttempt() {
    BarrierTaskContext context = BarrierTaskContext.get();
    if (context.stageAttemptNumber() == 0 && context.partitionId() == 0) {
      MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
      // The last one that is complete: the shuffle of the ranks' results has no output yet.
      int feed =
          CollectionConverters.asJava(tracker.shuffleStatuses()).entrySet().stream()
              .filter(shuffle -> shuffle.getValue().findMissingPartitions().isEmpty())
              .mapToInt(shuffle -> (Integer) shuffle.getKey())
              .max()
              .orElseThrow();
      tracker.unregisterMapOutput(feed, 1, SparkEnv.get().blockManager().shuffleServerId());
      throw new IllegalStateException("the first attempt of the ranks, as the test asked");
    }
  }
}
