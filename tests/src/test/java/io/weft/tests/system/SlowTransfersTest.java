package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.CutTransferJob;
import io.weft.tests.application.TransferJob;
import io.weft.tests.support.NetworkNamespaces;
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
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Arrays between two hosts whose network is slow, loses frames, or is cut meanwhile. */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class SlowTransfersTest {
  private static final Duration DEADLINE = Duration.ofSeconds(10);

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final NetworkNamespaces NETWORK = new NetworkNamespaces(WORKSPACE);

  @RegisterExtension
  @Order(3)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .network(NETWORK)
          .set("spark.weft.transfers.deadline", DEADLINE.toSeconds() + "s");

  private Path notes;

  @BeforeEach
  void makeFolder() throws IOException {
    CLUSTER.awaitExecutors();
    notes = Files.createTempDirectory(WORKSPACE.folder(), "notes-");
  }

  @AfterEach
  void mend() {
    NETWORK.heal();
    NETWORK.impair(0, 0);
  }

  @Test
  @Order(1)
  void delayAndLossChangeNoArray() throws IOException {
    NETWORK.impair(20, 1);
    assertExchanged();
  }

  /**
   * No data arrives any more, not even the end of a connection. This test runs last, as one end may
   * not have detected the failure when the link is restored. Any other timeout that could end the
   * wait, of TCP or of Spark, takes minutes.
   */
  @Test
  @Order(2)
  void aCutLinkFailsTransfersInTime() throws Exception {
    NETWORK.impair(5, 0);
    CompletableFuture<List<CutTransferJob.Answer>> job =
        CompletableFuture.supplyAsync(
            () -> new CutTransferJob(notes.toString()).run(CLUSTER.context()));
    Awaitility.await("both ends exchange arrays")
        .atMost(Duration.ofMinutes(3))
        .until(
            () ->
                Files.exists(notes.resolve("round-0-3"))
                    && Files.exists(notes.resolve("round-1-3")));
    NETWORK.cut();
    List<CutTransferJob.Answer> answers = job.get(3, TimeUnit.MINUTES);
    assertThat(answers).as("ends that failed").anyMatch(answer -> !answer.failure().isEmpty());
    for (CutTransferJob.Answer answer : answers) {
      String peer = answers.get(1 - answer.task()).executorId();
      if (!answer.failure().isEmpty()) {
        assertThat(answer.failure()).contains("executor " + peer + "/device 0");
      }
      assertThat(Duration.ofMillis(answer.millis()))
          .as("until task %d ended with: %s", answer.task(), answer.failure())
          .isLessThan(DEADLINE.multipliedBy(3));
    }
  }

  private void assertExchanged() {
    assertThat(new TransferJob(notes.toString(), false).run(CLUSTER.context()))
        .extracting(TransferJob.Answer::arrays)
        .containsExactly(TransferJob.arraysToEach(), TransferJob.arraysToEach());
  }
}
