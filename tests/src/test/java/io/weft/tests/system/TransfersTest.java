package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.RetriedTransferJob;
import io.weft.tests.application.TransferJob;
import io.weft.tests.application.TransferJob.Answer;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Transfers between the tasks of two executors, with the jar that users get. */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class TransfersTest {
  private static final Duration DEADLINE = Duration.ofSeconds(90);

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .set("spark.weft.transfers.deadline", DEADLINE.toSeconds() + "s")
          .set("spark.weft.transfers.batchAge", "30s");

  private Path notes;

  @BeforeEach
  void makeFolder() throws IOException {
    CLUSTER.awaitExecutors();
    notes = Files.createTempDirectory(WORKSPACE.folder(), "notes-");
  }

  /** Runs first, because it counts. */
  @Test
  @Order(1)
  void executorsExchangeArraysBothWaysByOneCommunicator() {
    List<Answer> answers = new TransferJob(notes.toString(), false).run(CLUSTER.context());
    assertThat(answers).extracting(Answer::executorId).doesNotHaveDuplicates();
    assertThat(answers)
        .extracting(Answer::arrays)
        .containsExactly(TransferJob.arraysToEach(), TransferJob.arraysToEach());
    CLUSTER.awaitSum("transferReceived", 2L * TransferJob.arraysToEach());
    CLUSTER.awaitSum("transferSent", 2L * TransferJob.arraysToEach());
    assertThat(CLUSTER.sum("transferFailed")).isZero();
    // Bytes of each of the last round's six arrays, all of which are shorter than a chunk.
    CLUSTER.awaitSum("transferChunksEncoded", 6);
    CLUSTER.awaitSum("transferChunksDecoded", 6);
    CLUSTER.awaitSum("transferBytesSent", CLUSTER.sum("transferBytesReceived"));
    CLUSTER.awaitSum("transferBuffersOut", 0);
    assertThat(CLUSTER.sum("transferBatchesByNeed"))
        .isEqualTo(CLUSTER.sum("transferGroups"))
        .isEqualTo(CLUSTER.sum("transferCliqueRequests"));
    assertThat(CLUSTER.sum("transferCommunicatorsCreated"))
        .isEqualTo(CLUSTER.sum("transferCliqueRequests") - CLUSTER.sum("transferCliqueReuses"));
  }

  /** The first attempt leaves its transfers open; the task's failure withdraws them. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  @Order(2)
  void aRetriedTaskMeetsNoTransferOfItsFirstAttempt(boolean sameKeys) {
    long start = System.nanoTime();
    assertThat(new RetriedTransferJob(notes.toString(), sameKeys).run(CLUSTER.context()))
        .containsExactly(1, 0);
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(DEADLINE);
  }

  /** Killed with SIGKILL while the other end waits for it. */
  @Test
  @Order(3)
  void aKilledExecutorIsNamedWithItsWaitingPeer() throws Exception {
    CompletableFuture<List<Answer>> job =
        CompletableFuture.supplyAsync(
            () -> new TransferJob(notes.toString(), true).run(CLUSTER.context()));
    Awaitility.await("the victim waits")
        .atMost(Duration.ofMinutes(3))
        .until(() -> Files.exists(notes.resolve("victim")));
    String victim = Files.readString(notes.resolve("victim"));
    String survivor = Files.readString(notes.resolve("waiting"));
    long start = System.nanoTime();
    CLUSTER.executor(victim).kill();
    List<Answer> answers = job.get(3, TimeUnit.MINUTES);
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(DEADLINE);
    assertThat(answers.get(0).failure())
        .contains("key 999 from executor " + victim + "/device 0")
        .contains("to executor " + survivor + "/device 0 failed: ");
  }
}
