package io.weft.spark.collectives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.SymmetricBuffer;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.symmetric.CollectiveMemoryCache;
import io.weft.device.probe.ProbeOptions;
import io.weft.shuffle.peer.GpuEnd;
import io.weft.shuffle.peer.PathRules;
import io.weft.shuffle.peer.PathRules.PathEnd;
import io.weft.shuffle.peer.TransportMode;
import io.weft.spark.LocalSpark;
import io.weft.spark.rendezvous.RendezvousService.RendezvousDriver;
import io.weft.spark.rendezvous.StageRendezvous.StageAttempt;
import io.weft.transfers.gpu.GpuRanks;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.types.DataTypes;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Barrier stages whose tasks are threads of this JVM. */
class WeftCollectivesTest {
  private static final Map<String, Object> SEEN = new ConcurrentHashMap<>();

  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    spark =
        LocalSpark.start(
            Map.of("spark.master", "local[2,4]", "spark.weft.collectives.timeout", "90s"));
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  private static SparkContext context() {
    return spark.session().sparkContext();
  }

  @Test
  void tasksOfABarrierStageReduceTogether() {
    List<String> answers =
        BarrierJobs.run(
            context(),
            2,
            task -> {
              Communicator communicator = WeftCollectives.communicator(task);
              assertThat(WeftCollectives.communicator(task)).isSameAs(communicator);
              assertThat(WeftCollectives.communicator()).isSameAs(communicator);
              return "%d/%d %s %s = %d"
                  .formatted(
                      communicator.rank(),
                      communicator.nranks(),
                      communicator.timeout(),
                      communicator.id().name(),
                      BarrierJobs.sumOfRanks(communicator));
            });
    String id = answers.get(0).split(" ")[2];
    assertThat(answers).containsExactly("0/2 PT1M30S " + id + " = 3", "1/2 PT1M30S " + id + " = 3");
  }

  @Test
  void aTaskThatAsksForAnotherSymmetricBufferIsNamed() {
    List<String> answers =
        BarrierJobs.run(
            context(),
            2,
            task -> {
              int count = 10 + task.partitionId();
              CollectiveException failure =
                  catchThrowableOfType(
                      CollectiveException.class,
                      () -> WeftCollectives.symmetric(task, DataType.INT64, count));
              SymmetricBuffer same = WeftCollectives.symmetric(task, DataType.INT64, 10);
              assertThat(same.whyPrivate()).isEmpty();
              SEEN.put("symmetric", same);
              return failure.kind() + " " + failure.getMessage();
            });
    assertThat(answers)
        .allSatisfy(
            answer ->
                assertThat(answer)
                    .startsWith("MISMATCH")
                    .contains("rank 0 asks for symmetric", "10 int64", "rank 1", "11 int64"));
    SymmetricBuffer ended = (SymmetricBuffer) SEEN.get("symmetric");
    assertThatThrownBy(() -> ended.signal(0, 0, 1)).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void theCallerMayNameTheTimeout() {
    assertThat(
            BarrierJobs.run(
                context(),
                2,
                task ->
                    WeftCollectives.communicator(task, Duration.ofSeconds(47))
                        .timeout()
                        .toString()))
        .containsOnly("PT47S");
  }

  @Test
  void everyStageHasItsOwnCommunicatorWhichEndsWithIt() {
    HashSet<String> ids = new HashSet<>();
    for (int i = 0; i < 3; i++) {
      ids.addAll(
          BarrierJobs.run(
              context(),
              2,
              task -> {
                Communicator communicator = WeftCollectives.communicator(task);
                SEEN.put("last", communicator);
                return communicator.id().name();
              }));
    }
    assertThat(ids).hasSize(3);
    Communicator last = (Communicator) SEEN.get("last");
    assertThatThrownBy(last::barrier).hasMessageContaining("closed communicator");
  }

  @Test
  void aFailedTaskNamesItselfToTheOthersAndTheRetryStartsAfresh() {
    List<String> answers =
        BarrierJobs.runThenShuffle(
            context(),
            2,
            task -> {
              Communicator communicator = WeftCollectives.communicator(task);
              SEEN.put("retry " + task.stageAttemptNumber(), communicator.id());
              if (task.stageAttemptNumber() == 0 && task.partitionId() == 1) {
                // Else Spark may kill the other task before it has its communicator.
                communicator.barrier();
                throw new IllegalStateException("boom");
              }
              try {
                communicator.barrier();
                return "sum " + BarrierJobs.sumOfRanks(communicator);
              } catch (RuntimeException e) {
                SEEN.put("message", e.getMessage());
                throw e;
              }
            });
    assertThat(answers).containsOnly("sum 3");
    assertThat(SEEN.get("retry 0")).isNotEqualTo(SEEN.get("retry 1"));
    assertThat((String) SEEN.get("message"))
        .containsPattern(
            "rank 1 .*boom.*\\(rank 1 is task \\d+ on executor driver at localhost\\)");
  }

  @Test
  void aTaskThatNeverComesIsNamedWhenTheTimeIsUp() {
    assertThatThrownBy(
            () ->
                BarrierJobs.run(
                    context(),
                    2,
                    task -> {
                      if (task.partitionId() == 1) {
                        awaitKill(task);
                      }
                      return WeftCollectives.communicator(task, Duration.ofSeconds(5)).toString();
                    }))
        .hasStackTraceContaining("rank 1 did not come to round join of barrier stage")
        .hasStackTraceContaining("waited for 5 s")
        .hasStackTraceContaining("(rank 1 is task ");
  }

  private static void awaitKill(TaskContext task) {
    Awaitility.await().atMost(Duration.ofMinutes(1)).until(task::isInterrupted);
  }

  @Test
  void aCancelledJobEndsTheWaitsOfItsTasks() {
    CompletableFuture<List<String>> job =
        CompletableFuture.supplyAsync(
            () -> BarrierJobs.run(context(), 2, WeftCollectivesTest::reduceUntilCancelled));
    Awaitility.await().atMost(Duration.ofMinutes(1)).until(() -> SEEN.containsKey("held"));
    context().cancelAllJobs();
    assertThatThrownBy(() -> job.get(1, TimeUnit.MINUTES)).hasStackTraceContaining("cancelled");
    Awaitility.await()
        .atMost(Duration.ofSeconds(60))
        .untilAsserted(
            () ->
                assertThat(String.valueOf(SEEN.get("cancelled")))
                    .containsAnyOf("its task was killed", "closed its communicator"));
  }

  private static String reduceUntilCancelled(BarrierTaskContext task) {
    Communicator communicator = WeftCollectives.communicator(task);
    if (task.partitionId() == 1) {
      SEEN.put("held", true);
      awaitKill(task);
      return "";
    }
    try {
      return "sum " + BarrierJobs.sumOfRanks(communicator);
    } catch (RuntimeException e) {
      SEEN.put("cancelled", e.getMessage());
      throw e;
    }
  }

  @Test
  void outsideOfABarrierStageTheErrorSaysSo() {
    assertThatThrownBy(WeftCollectives::communicator)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("This thread runs no task of Spark")
        .hasMessageContaining("rdd.barrier()");
    SparkSession session = spark.session();
    UDF1<Long, Long> ask = row -> row + WeftCollectives.communicator().rank();
    session.udf().register("communicator", ask, DataTypes.LongType);
    assertThatThrownBy(() -> session.sql("SELECT communicator(id) FROM RANGE(3)").collect())
        .hasStackTraceContaining("is no barrier stage: communicators are for the tasks of");
  }

  /** Spark itself would wait for its own timeout, two minutes. */
  @Test
  void aDriverThatDoesNotAnswerIsGivenUpInTime() {
    BarrierJobs.run(
        context(),
        1,
        task -> {
          CountDownLatch never = new CountDownLatch(1);
          RendezvousDriver<StageAttempt> deaf =
              call -> {
                throw new IOException("answered late: " + never.await(100, TimeUnit.SECONDS));
              };
          CommunicatorFactory none =
              (bootstrap, options) -> {
                throw new IllegalStateException("no communicator is expected");
              };
          Duration timeout = Duration.ofSeconds(1);
          long start = System.nanoTime();
          try (ExecutorCollectives collectives =
              new ExecutorCollectives(
                  new ExecutorCollectives.Options("driver", "localhost", timeout),
                  none,
                  noGpus(none),
                  deaf,
                  new CollectiveMemoryCache())) {
            SEEN.put(
                "deaf",
                catchThrowableOfType(
                    CollectiveException.class, () -> collectives.communicator(task, timeout)));
          }
          return String.valueOf(SEEN.put("deaf nanos", System.nanoTime() - start));
        });
    CollectiveException failure = (CollectiveException) SEEN.get("deaf");
    assertThat(failure.kind()).isEqualTo(CollectiveException.Kind.TIMEOUT);
    assertThat(failure).hasMessageMatching("the driver gave task \\d+ .* no answer .* within 1 s");
    assertThat(Duration.ofNanos((Long) SEEN.get("deaf nanos"))).isLessThan(Duration.ofSeconds(50));
    Awaitility.await("the end of the calling thread")
        .atMost(Duration.ofSeconds(60))
        .until(
            () ->
                Thread.getAllStackTraces().keySet().stream()
                    .noneMatch(
                        thread -> thread.getName().startsWith("weft-collectives-rendezvous")));
  }

  private static GpuRanks noGpus(CommunicatorFactory hosts) {
    return new GpuRanks(
        new GpuRanks.Options(
            "driver",
            new PathEnd("unknown", GpuEnd.without("a test")),
            new PathRules(TransportMode.AUTO, false, false),
            ProbeOptions.defaults(),
            1 << 20,
            hosts));
  }

  /** The tasks go on without GPUs. */
  @Test
  void ranksWithoutGpuAreNamedOnAllTasks() {
    List<String> answers =
        BarrierJobs.run(
            context(),
            2,
            task -> {
              CollectiveException refusal =
                  catchThrowableOfType(
                      CollectiveException.class, () -> WeftCollectives.onGpu(task));
              return refusal.kind()
                  + " "
                  + refusal.ranks()
                  + " "
                  + refusal.getMessage()
                  + " = "
                  + BarrierJobs.sumOfRanks(WeftCollectives.communicator(task));
            });
    assertThat(answers)
        .allSatisfy(
            answer ->
                assertThat(answer)
                    .startsWith("INVALID [0, 1] every rank needs a GPU with NCCL, but ranks 0, 1")
                    .contains("have none: executor driver@", "no GPU for arrays: ")
                    .endsWith(" = 3"));
  }

  @Test
  void operationsAreCountedByAlgorithm() {
    awaitNoneOpen();
    CollectiveStatistics before = statistics();
    BarrierJobs.run(
        context(),
        2,
        task -> {
          TypedBuffer buffer =
              TypedBuffer.wrap(ByteBuffer.allocateDirect(1 << 20), DataType.FLOAT32);
          WeftCollectives.communicator(task).allReduce(buffer, ReduceOp.SUM);
          return "" + BarrierJobs.sumOfRanks(WeftCollectives.communicator(task));
        });
    awaitNoneOpen();
    CollectiveStatistics after = statistics();
    assertThat(after.opened() - before.opened()).isEqualTo(2);
    assertThat(after.sum(line -> line.bytes()) - before.sum(line -> line.bytes()))
        .isEqualTo(2 * ((1 << 20) + 8));
    assertThat(after.sum(line -> line.calls()) - before.sum(line -> line.calls())).isEqualTo(4);
  }

  /** A task of a job that was cancelled may end after the job. */
  private static void awaitNoneOpen() {
    Awaitility.await("no communicator open")
        .atMost(Duration.ofSeconds(60))
        .until(() -> statistics().open() == 0);
  }

  private static CollectiveStatistics statistics() {
    return ExecutorCollectives.running().orElseThrow().statistics();
  }
}
