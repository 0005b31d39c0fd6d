package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.GpuCollectivesJob;
import io.weft.tests.application.GpuCollectivesJob.Answer;
import io.weft.tests.application.GpuCollectivesJob.Mishap;
import io.weft.tests.application.Notes;
import io.weft.tests.support.DoubleGpus;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Barrier stages whose tasks are GPUs, in two executors on the doubles of libcuda and libnccl, with
 * the jar that users get.
 */
class GpuCollectivesTest {
  private static final int TASKS = 2;

  /** The segment that all buffers of a task share. */
  private static final long BYTES = 4L << 20;

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  private WeftCluster cluster;
  private Path machine;
  private Path notes;

  @AfterEach
  void stop() {
    if (cluster != null) {
      cluster.stop();
    }
  }

  private void start(int workersWithGpu) throws IOException {
    DoubleGpus.assume();
    machine = Files.createTempDirectory(WORKSPACE.folder(), "machine-");
    cluster =
        new WeftCluster(WORKSPACE)
            // Memory that becomes idle during a test stays.
            .set("spark.weft.memory.idleTime", "0");
    DoubleGpus.settings(machine).forEach(cluster::set);
    DoubleGpus.only(machine, workersWithGpu);
    cluster.start();
  }

  private GpuCollectivesJob job(Mishap mishap) throws IOException {
    notes = Files.createTempDirectory(WORKSPACE.folder(), "notes-");
    return new GpuCollectivesJob(
        new Notes(notes.toString()), DoubleGpus.libcuda(machine).toString(), mishap);
  }

  private void run(Mishap mishap) throws IOException {
    check(job(mishap).run(cluster.context()));
  }

  private void check(List<Answer> answers) {
    assertThat(answers).extracting(Answer::rank).containsExactlyInAnyOrder(0, 1);
    assertThat(answers).extracting(Answer::gpu).containsExactlyInAnyOrder(0, 1);
    assertThat(answers).allSatisfy(answer -> assertThat(answer.failures()).isEmpty());
    assertThat(answers).extracting(Answer::violations).containsOnly("");
    assertThat(answers).extracting(Answer::refusal).containsOnly("");
    cluster.awaitSum("communicatorsOpen", 0);
    assertThat(cluster.sum("gpuBufferUsed")).isZero();
  }

  @Test
  void stagesRunOnGpusAndKeepTheirMemory() throws Exception {
    start(TASKS);
    for (int stage = 1; stage <= 3; stage++) {
      run(Mishap.NONE);
      assertThat(cluster.sum("gpuBufferWindows")).isEqualTo((long) stage * TASKS);
      assertThat(cluster.sum("gpuBufferFresh")).isEqualTo(TASKS * BYTES);
      assertThat(cluster.sum("gpuBufferReused")).isEqualTo((stage - 1) * TASKS * BYTES);
      assertThat(cluster.sum("gpuBufferIdle")).isEqualTo(TASKS * BYTES);
    }
    assertThat(cluster.sum("collectiveCallsNccl")).isPositive();

    // Memory of a communicator that broke is not used again.
    run(Mishap.FAILS);
    assertThat(Files.readString(notes.resolve("failure-0")))
        .contains("rank 1")
        .contains("failed, as the test asked")
        .contains("on executor");
    assertThat(cluster.sum("gpuBufferFresh")).isEqualTo(2 * TASKS * BYTES);
    assertThat(cluster.sum("gpuBufferIdle")).isEqualTo(TASKS * BYTES);

    run(Mishap.LATE);
    assertThat(Files.readString(notes.resolve("failure-0"))).contains("rank 1").contains("20 s");

    CompletableFuture<List<Answer>> waiting =
        CompletableFuture.supplyAsync(runner(job(Mishap.WAITS)));
    Path victim = notes.resolve("waiting");
    Awaitility.await("the victim waits")
        .atMost(Duration.ofMinutes(3))
        .until(() -> Files.exists(victim) || waiting.isDone());
    cluster.executor(Files.readString(victim)).kill();
    List<Answer> answers = waiting.get(3, TimeUnit.MINUTES);
    cluster.awaitExecutors();
    check(answers);
  }

  private Supplier<List<Answer>> runner(GpuCollectivesJob job) {
    return () -> job.run(cluster.context());
  }

  /** The tasks go on without GPUs. */
  @Test
  void anExecutorWithoutGpuIsNamedOnAllRanks() throws IOException {
    start(1);
    List<Answer> answers = job(Mishap.NONE).run(cluster.context());
    assertThat(answers).hasSize(TASKS);
    assertThat(answers).allSatisfy(answer -> assertThat(answer.failures()).isEmpty());
    String refusal = answers.get(0).refusal();
    assertThat(answers).extracting(Answer::refusal).containsOnly(refusal);
    assertThat(refusal)
        .startsWith("INVALID: every rank needs a GPU with NCCL, but rank ")
        .contains(" has none: executor ")
        .contains("the executor was given GPU 99, but its process sees")
        .contains("on executor");
    cluster.awaitSum("communicatorsOpen", 0);
  }
}
