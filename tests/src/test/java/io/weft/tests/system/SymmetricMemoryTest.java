package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.BarrierJob;
import io.weft.tests.application.BarrierJob.Answer;
import io.weft.tests.application.BarrierJob.Buffers;
import io.weft.tests.application.BarrierJob.Mishap;
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
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Symmetric buffers of barrier tasks in two executors, from one stage to the next. */
class SymmetricMemoryTest {
  private static final int TASKS = 4;

  /** Of each task. */
  private static final int BUFFERS = 2;

  /** What each task reserves for its buffers. */
  private static final long SEGMENT = 4L << 20;

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .cores(2)
          .set("spark.weft.collectives.timeout", "90s")
          // Memory that becomes idle during a test stays.
          .set("spark.weft.memory.idleTime", "0");

  private Path notes;

  @BeforeEach
  void makeFolder() throws IOException {
    CLUSTER.awaitExecutors();
    notes = Files.createTempDirectory(WORKSPACE.folder(), "notes-");
  }

  private void run(Mishap mishap) {
    List<Answer> answers =
        new BarrierJob(notes.toString(), mishap, Buffers.SYMMETRIC).run(CLUSTER.context(), TASKS);
    assertThat(answers).hasSize(TASKS);
    assertThat(answers).extracting(Answer::sum).containsOnly((long) TASKS * (TASKS + 1));
    assertThat(answers.stream().map(Answer::executorId).distinct()).hasSize(2);
    CLUSTER.awaitSum("communicatorsOpen", 0);
    assertThat(CLUSTER.sum("symmetricUsed")).isZero();
  }

  @Test
  void laterStagesUseTheMemoryOfTheFirst() throws IOException {
    run(Mishap.NONE);
    long fresh = CLUSTER.sum("symmetricFresh");
    long memory = CLUSTER.sum("memoryFresh");
    long hits = CLUSTER.sum("symmetricHits");
    long misses = CLUSTER.sum("symmetricMisses");
    assertThat(fresh).isPositive();
    assertThat(CLUSTER.sum("symmetricIdle")).isPositive();
    for (int i = 1; i <= 3; i++) {
      makeFolder();
      run(Mishap.NONE);
      assertThat(CLUSTER.sum("symmetricHits") - hits).isEqualTo((long) i * TASKS * BUFFERS);
    }
    assertThat(CLUSTER.sum("symmetricFresh")).isEqualTo(fresh);
    assertThat(CLUSTER.sum("symmetricMisses")).isEqualTo(misses);
    assertThat(CLUSTER.sum("symmetricMismatches")).isZero();
    // The answers pass through a shuffle, whose memory is reused too.
    assertThat(CLUSTER.sum("memoryFresh")).isEqualTo(memory);
  }

  /** The failed attempt takes the memory that is there and frees it, so the retry takes more. */
  @Test
  void failedStageFreesItsMemoryAndTheRetryIsRight() throws IOException {
    run(Mishap.NONE);
    long idle = CLUSTER.sum("symmetricIdle");
    long fresh = CLUSTER.sum("symmetricFresh");
    for (int i = 1; i <= 2; i++) {
      makeFolder();
      run(Mishap.FAILS);
      assertThat(CLUSTER.sum("symmetricFresh") - fresh).isEqualTo((long) i * TASKS * SEGMENT);
      assertThat(CLUSTER.sum("symmetricIdle")).isEqualTo(idle);
    }
  }

  @Test
  void theRetryAfterAKilledExecutorIsRightAndItsMemoryIsUsedAgain() throws Exception {
    CompletableFuture<Void> job = CompletableFuture.runAsync(() -> run(Mishap.WAITS));
    Awaitility.await("waiting")
        .atMost(Duration.ofMinutes(3))
        .until(() -> Files.exists(notes.resolve("waiting")));
    CLUSTER.executor(Files.readString(notes.resolve("waiting"))).kill();
    job.get(3, TimeUnit.MINUTES);
    long fresh = CLUSTER.sum("symmetricFresh");
    long hits = CLUSTER.sum("symmetricHits");
    makeFolder();
    run(Mishap.NONE);
    assertThat(CLUSTER.sum("symmetricFresh")).isEqualTo(fresh);
    assertThat(CLUSTER.sum("symmetricHits") - hits).isEqualTo((long) TASKS * BUFFERS);
  }
}
