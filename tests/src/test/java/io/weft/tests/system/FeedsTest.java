package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.feed.FeedExport;
import io.weft.tests.application.FeedJob;
import io.weft.tests.application.FeedJob.Answer;
import io.weft.tests.support.Folders;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.ipc.ArrowFileReader;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Feeds into ranks in two executors, with the jar that users get. */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class FeedsTest {
  private static final long SUM = (long) FeedJob.ROWS * (FeedJob.ROWS - 1) / 2;

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER = new WeftCluster(WORKSPACE);

  private Path notes;

  @BeforeEach
  void makeFolder() throws IOException {
    CLUSTER.awaitExecutors();
    notes = Files.createTempDirectory(WORKSPACE.folder(), "notes-");
  }

  private static List<Long> allIds() {
    return LongStream.range(0, FeedJob.ROWS).boxed().toList();
  }

  private static void check(List<Answer> answers) {
    assertThat(answers).hasSize(2);
    List<Long> ids = new ArrayList<>();
    answers.forEach(answer -> ids.addAll(answer.ids()));
    assertThat(ids).containsExactlyInAnyOrderElementsOf(allIds());
    assertThat(answers).extracting(Answer::copied).containsOnly(0);
    assertThat(answers).extracting(Answer::sum).containsOnly(2 * SUM);
  }

  /** Runs first, because it counts: half of a rank's batches were written by the other executor. */
  @Test
  @Order(1)
  void ranksReadTheBatchesOfBothExecutorsInPlace() {
    List<Answer> answers = new FeedJob(notes.toString(), false).run(CLUSTER.session());
    check(answers);
    assertThat(answers).extracting(Answer::executorId).doesNotHaveDuplicates();
    assertThat(answers)
        .extracting(Answer::refusal)
        .allMatch(refusal -> refusal.contains("needs org.apache.arrow:arrow-c-data"));
    assertThat(CLUSTER.sum("feedBatchesInPlace")).isEqualTo(FeedJob.ROWS / FeedJob.BATCH_ROWS);
    assertThat(CLUSTER.sum("feedBytesGathered")).isZero();
    assertThat(CLUSTER.sum("remoteBytes")).isZero();
    CLUSTER.awaitNothingUsed();
  }

  @Test
  @Order(2)
  void anExportIsReadFromOutsideAndFreedEverywhere() throws IOException {
    List<Long> ids = new ArrayList<>();
    try (FeedExport export = FeedJob.feed(CLUSTER.session()).export()) {
      for (FeedExport.Shard shard : export.shards()) {
        try (var allocator = new RootAllocator();
            var file = Files.newByteChannel(Path.of(shard.file()));
            ArrowFileReader reader = new ArrowFileReader(file, allocator)) {
          while (reader.loadNextBatch()) {
            BigIntVector id = (BigIntVector) reader.getVectorSchemaRoot().getVector("id");
            for (int row = 0; row < id.getValueCount(); row++) {
              ids.add(id.get(row));
            }
          }
        }
      }
    }
    assertThat(ids).containsExactlyInAnyOrderElementsOf(allIds());
    Awaitility.await("files of the export")
        .atMost(Duration.ofMinutes(3))
        .untilAsserted(
            () ->
                assertThat(Folders.tree(WORKSPACE.sharedMemory()))
                    .noneMatch(file -> file.getFileName().toString().contains("feed-")));
  }

  /** Killed with SIGKILL: its map outputs are still read, or recomputed, and training restarts. */
  @Test
  @Order(3)
  void aKilledExecutorCostsAnAttemptAndNoRow() throws Exception {
    CompletableFuture<List<Answer>> job =
        CompletableFuture.supplyAsync(
            () -> new FeedJob(notes.toString(), true).run(CLUSTER.session()));
    Awaitility.await("the victim waits")
        .atMost(Duration.ofMinutes(3))
        .until(() -> Files.exists(notes.resolve("victim")) || job.isDone());
    assertThat(job).as("the job, before its executor was killed").isNotDone();
    String victim = Files.readString(notes.resolve("victim"));
    CLUSTER.executor(victim).kill();
    check(job.get(4, TimeUnit.MINUTES));
  }
}
