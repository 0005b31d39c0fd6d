package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.spark.feed.GpuFeedExport;
import io.weft.spark.feed.LastBatch;
import io.weft.spark.feed.RankFailedException;
import io.weft.spark.feed.WeftFeed;
import io.weft.spark.gpu.DeviceFunction;
import io.weft.spark.gpu.jcuda.JcudaBatches;
import io.weft.spark.sql.WeftGpu;
import io.weft.tests.application.FeedJob;
import io.weft.tests.application.GpuExchangeJob;
import io.weft.tests.application.GpuFeedJob;
import io.weft.tests.application.GpuSqlJob;
import io.weft.tests.application.GpuTransferJob;
import io.weft.tests.application.GpuTransferJob.Answer;
import io.weft.tests.application.Notes;
import io.weft.tests.application.SameBatch;
import io.weft.tests.support.DoubleGpus;
import io.weft.tests.support.TaskLog;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.io.IOException;
import java.lang.ref.Reference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.extension.RegisterExtension;
import scala.jdk.javaapi.CollectionConverters;

/**
 * An application whose executors have one GPU each, with the jar that users get, on the doubles of
 * libcuda and libnccl.
 */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class GpuApplicationTest {
  private static final Duration DEADLINE = Duration.ofSeconds(90);

  /** Of the feed. */
  private static final int MAP_TASKS = 4;

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  private static WeftCluster cluster;

  private Notes notes;

  @BeforeAll
  static void start() {
    DoubleGpus.assume();
    cluster =
        new WeftCluster(WORKSPACE)
            .migrating()
            .set("spark.weft.transfers.deadline", DEADLINE.toSeconds() + "s");
    DoubleGpus.settings(WORKSPACE.folder()).forEach(cluster::set);
    cluster.start();
  }

  @AfterAll
  static void stop() {
    if (cluster != null) {
      cluster.stop();
    }
  }

  @BeforeEach
  void makeFolder() throws IOException {
    cluster.awaitExecutors();
    notes = new Notes(Files.createTempDirectory(WORKSPACE.folder(), "notes-").toString());
  }

  private GpuTransferJob transfers(boolean waits) {
    return new GpuTransferJob(notes, libcuda(), waits);
  }

  private static String libcuda() {
    return DoubleGpus.libcuda(WORKSPACE.folder()).toString();
  }

  /** Runs first, because it counts. */
  @Test
  @Order(1)
  void executorsExchangeArraysBetweenTheirGpusByNccl() {
    List<Answer> answers = transfers(false).run(cluster.context());
    assertThat(answers).extracting(Answer::violations).containsOnly("");
    assertThat(answers).extracting(Answer::executorId).doesNotHaveDuplicates();
    assertThat(answers).extracting(Answer::gpu).containsExactlyInAnyOrder(0, 1);
    assertThat(answers).extracting(Answer::arrays).containsOnly(GpuTransferJob.arraysToEach());
    cluster.awaitSum("transferReceived", 2L * GpuTransferJob.arraysToEach());
    assertThat(cluster.sum("transferFailed")).isZero();
    cluster.awaitSum("transferBuffersOut", 0);
    cluster.awaitLogged("go by nccl");
  }

  @Test
  @Order(2)
  void ranksFindEveryRowInMemoryOfTheirGpus() {
    List<GpuFeedJob.Answer> answers = new GpuFeedJob(libcuda()).run(cluster.session());
    assertThat(answers).extracting(GpuFeedJob.Answer::violations).containsOnly("");
    assertThat(answers).extracting(GpuFeedJob.Answer::gpu).containsExactlyInAnyOrder(0, 1);
    List<Long> ids = new ArrayList<>();
    answers.forEach(answer -> ids.addAll(answer.ids()));
    assertThat(ids)
        .containsExactlyInAnyOrderElementsOf(LongStream.range(0, FeedJob.ROWS).boxed().toList());
    assertThat(cluster.sum("feedGpuBatches")).isEqualTo(FeedJob.ROWS / FeedJob.BATCH_ROWS);
  }

  /** Spark would try the ranks' stage four times. */
  @Test
  @Order(2)
  void aBatchThatNoGpuCanTakeEndsItsExportAtOnce() {
    Dataset<Row> rows = cluster.session().range(0, 10, 1, 2).toDF();
    WeftFeed feed = WeftFeed.shards(rows, 2).batchRows(600_000_000).lastBatch(LastBatch.KEEP);
    try (TaskLog log = TaskLog.open(cluster.context())) {
      assertThatThrownBy(feed::exportToGpus)
          .isInstanceOf(RankFailedException.class)
          .hasMessageContaining("4.5 GiB of memory of")
          .hasMessageContaining("are more than spark.weft.gpu.memory=4g. Raise it");
      assertThat(log.mapTasks()).as("map tasks and ranks").isLessThanOrEqualTo(2 + 2);
    }
  }

  /** Half of a rank's rows were written by the other executor, and come from its GPU. */
  @Test
  @Order(3)
  void rowsGoFromGpuToGpu() {
    long arrays = cluster.sum("transferReceived");
    long uploaded = cluster.sum("feedGpuBatches");
    check(new GpuExchangeJob(libcuda(), null).run(cluster.session()));
    assertThat(cluster.sum("transferReceived")).isGreaterThan(arrays);
    assertThat(cluster.sum("feedGpuBatches")).isEqualTo(uploaded);
    assertThat(cluster.sum("transferFailed")).isZero();
  }

  private static void check(List<GpuExchangeJob.Answer> answers) {
    assertThat(answers).extracting(GpuExchangeJob.Answer::violations).containsOnly("");
    assertThat(answers).extracting(GpuExchangeJob.Answer::gpu).containsExactlyInAnyOrder(0, 1);
    List<Long> ids = new ArrayList<>();
    answers.forEach(answer -> ids.addAll(answer.ids()));
    assertThat(ids)
        .containsExactlyInAnyOrderElementsOf(LongStream.range(0, FeedJob.ROWS).boxed().toList());
  }

  /** Killed with SIGKILL: its blocks on the GPU are recomputed, and training restarts. */
  @Test
  @Order(4)
  void aKilledExecutorsBlocksAreComputedAgain() throws Exception {
    CompletableFuture<List<GpuExchangeJob.Answer>> job =
        CompletableFuture.supplyAsync(
            () -> new GpuExchangeJob(libcuda(), notes).run(cluster.session()));
    kill(awaitVictim(job));
    check(job.get(4, TimeUnit.MINUTES));
  }

  private String awaitVictim(CompletableFuture<?> job) throws IOException {
    Path note = Path.of(notes.folder(), "victim");
    Awaitility.await("the victim waits")
        .atMost(Duration.ofMinutes(3))
        .until(() -> Files.exists(note) || job.isDone());
    assertThat(job).as("the job, before its executor was killed").isNotDone();
    return Files.readString(note);
  }

  private static void kill(String victim) {
    cluster.executor(victim).kill();
  }

  /** Its blocks move to the other executor's GPU; the next attempt finds all of them there. */
  @Test
  @Order(5)
  void aDecommissionedExecutorsBlocksMoveToAnotherGpu() throws Exception {
    cluster.awaitExecutors();
    try (TaskLog log = TaskLog.open(cluster.context())) {
      CompletableFuture<List<GpuExchangeJob.Answer>> job =
          CompletableFuture.supplyAsync(
              () -> new GpuExchangeJob(libcuda(), notes).run(cluster.session()));
      String victim = awaitVictim(job);
      assertThat(outputsOf(victim)).isPositive();
      cluster.startDecommission(
          cluster.executors().stream().filter(each -> each.id().equals(victim)).toList());
      Awaitility.await("the move of the blocks of executor " + victim)
          .atMost(Duration.ofMinutes(3))
          .until(() -> outputsOf(victim) == 0 || job.isDone());
      Files.writeString(Path.of(notes.folder(), GpuExchangeJob.GO), victim);
      check(job.get(4, TimeUnit.MINUTES));
      assertThat(log.mapTasks())
          .as("map tasks, none of them twice, and two attempts of the ranks, which write as well")
          .isEqualTo(MAP_TASKS + 2 * 2);
      assertThat(log.fetchFailures()).isEmpty();
    }
  }

  /** Number of map outputs that the driver has registered for an executor. */
  private static long outputsOf(String executor) {
    MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
    return CollectionConverters.asJava(tracker.shuffleStatuses()).values().stream()
        .mapToLong(
            shuffle ->
                shuffle.withMapStatuses(
                    outputs ->
                        Arrays.stream(outputs)
                            .filter(output -> output != null)
                            .filter(output -> output.location().executorId().equals(executor))
                            .count()))
        .sum();
  }

  /** Killed with SIGKILL while the other end waits for it in NCCL. */
  @Test
  @Order(6)
  void aKilledExecutorIsNamedWithItsWaitingPeer() throws Exception {
    CompletableFuture<List<Answer>> job =
        CompletableFuture.supplyAsync(() -> transfers(true).run(cluster.context()));
    String victim = awaitVictim(job);
    String survivor = Files.readString(Path.of(notes.folder(), "waiting"));
    long start = System.nanoTime();
    kill(victim);
    List<Answer> answers = job.get(3, TimeUnit.MINUTES);
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(DEADLINE);
    assertThat(answers.get(0).failure())
        .contains("key 999 from executor " + victim + "/device 1")
        .contains("to executor " + survivor + "/device 1 failed: ");
  }

  /** Map outputs stay on the GPUs; half of a task's input comes from the other executor's. */
  @Test
  @Order(7)
  void batchesOfSqlGoFromGpuToGpu() {
    long arrays = cluster.sum("transferReceived");
    GpuSqlJob job = new GpuSqlJob(libcuda(), null);
    Dataset<String> query = job.query(cluster.session());
    assertThat(GpuSqlJob.sorted(query)).isEqualTo(GpuSqlJob.expected(cluster.session()));
    assertThat(cluster.sum("transferReceived")).isGreaterThan(arrays);
    List<GpuSqlJob.Answer> answers = job.ask(cluster.session());
    assertThat(answers).extracting(GpuSqlJob.Answer::violations).containsOnly("");
    assertThat(answers).extracting(GpuSqlJob.Answer::executorId).doesNotHaveDuplicates().hasSize(2);
    assertThat(answers).extracting(GpuSqlJob.Answer::gpu).doesNotHaveDuplicates();
    assertThat(answers).extracting(GpuSqlJob.Answer::outputs).allMatch(outputs -> outputs > 0);
    Reference.reachabilityFence(query); // Spark forgets the shuffle of an unreachable query.
  }

  /** Killed with SIGKILL while it reads: its blocks on the GPU are recomputed. */
  @Test
  @Order(8)
  void aKilledExecutorsMapOutputsAreComputedAgain() throws Exception {
    List<String> expected = GpuSqlJob.expected(cluster.session());
    CompletableFuture<List<String>> job =
        CompletableFuture.supplyAsync(() -> new GpuSqlJob(libcuda(), notes).run(cluster.session()));
    kill(awaitVictim(job));
    assertThat(job.get(4, TimeUnit.MINUTES)).isEqualTo(expected);
  }

  /** The driver has it. */
  @Test
  @Order(9)
  void executorsWithoutJcudaSaySo() {
    Dataset<Row> rows = cluster.session().range(10).toDF();
    DeviceFunction function = JcudaBatches.function(rows.schema(), new SameBatch());
    assertThatThrownBy(() -> WeftGpu.mapBatches(rows, rows.schema(), function).collectAsList())
        .hasStackTraceContaining("JCuda is not on the class path of this executor")
        .hasStackTraceContaining("add org.jcuda:jcuda:");
  }

  /** Map tasks deal the batches of the query where they are. */
  @Test
  @Order(10)
  void batchesOfAQueryGoFromItsGpuToThoseOfRanks() {
    long arrays = cluster.sum("transferReceived");
    long uploaded = cluster.sum("feedGpuBatches");
    check(new GpuExchangeJob(libcuda(), null).runAfterQuery(cluster.session()));
    cluster.awaitSum("feedGpuInputKept", MAP_TASKS);
    assertThat(cluster.sum("feedGpuInputLeft")).isZero();
    assertThat(cluster.sum("transferReceived")).isGreaterThan(arrays);
    assertThat(cluster.sum("feedGpuBatches")).isEqualTo(uploaded);
  }

  /** With keys that are strings. */
  @Test
  @Order(11)
  void batchesOfAQueryAreExportedOnTheGpusOfRanks() {
    long arrays = cluster.sum("transferReceived");
    long uploaded = cluster.sum("feedGpuBatches");
    long kept = cluster.sum("feedGpuInputKept");
    Dataset<Row> rows =
        cluster
            .session()
            .range(0, FeedJob.ROWS, 1, MAP_TASKS)
            .selectExpr("id", "concat('user ', id % 100) as user");
    WeftFeed feed = WeftFeed.shards(WeftGpu.onDevice(rows), 2).by("user").lastBatch(LastBatch.KEEP);
    try (GpuFeedExport export = feed.exportToGpus()) {
      assertThat(export.shards()).extracting(GpuFeedExport.Shard::gpu).doesNotHaveDuplicates();
      assertThat(export.shards().stream().mapToLong(GpuFeedExport.Shard::rows).sum())
          .isEqualTo(FeedJob.ROWS);
    }
    cluster.awaitSum("feedGpuInputKept", kept + MAP_TASKS);
    assertThat(cluster.sum("feedGpuInputLeft")).isZero();
    assertThat(cluster.sum("transferReceived")).isGreaterThan(arrays);
    assertThat(cluster.sum("feedGpuBatches")).isEqualTo(uploaded);
  }
}
