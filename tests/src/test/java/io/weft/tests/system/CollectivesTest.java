package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.BarrierJob;
import io.weft.tests.application.BarrierJob.Answer;
import io.weft.tests.application.BarrierJob.Buffers;
import io.weft.tests.application.BarrierJob.Mishap;
import io.weft.tests.application.ExecutorThreads;
import io.weft.tests.support.Folders;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Communicators of barrier tasks in two executors, with the jar that users get. */
class CollectivesTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(90);

  /** Prefixes of the names of all threads that collectives start. */
  private static final List<String> OF_COLLECTIVES =
      List.of("weft-collectives", "weft-agent-", "weft-clique-", "weft-lane-");

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .cores(2)
          .set("spark.weft.collectives.timeout", TIMEOUT.toSeconds() + "s");

  private Path notes;

  @BeforeEach
  void makeFolder() throws IOException {
    CLUSTER.awaitExecutors();
    notes = Files.createTempDirectory(WORKSPACE.folder(), "notes-");
  }

  private List<Answer> run(int tasks, Mishap mishap) {
    return new BarrierJob(notes.toString(), mishap, Buffers.PRIVATE).run(CLUSTER.context(), tasks);
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 4})
  void ranksInTwoExecutorsReduceTogether(int tasks) {
    long calls = CLUSTER.sum("collectiveCalls");
    List<Answer> answers = run(tasks, Mishap.NONE);
    checkSums(answers, tasks);
    assertThat(answers.stream().map(Answer::executorId).distinct()).hasSize(2);
    assertThat(CLUSTER.sum("collectiveCalls") - calls).isEqualTo(2L * tasks);
    CLUSTER.awaitSum("communicatorsOpen", 0);
    awaitNoCommunicatorIsLeft();
  }

  private static void checkSums(List<Answer> answers, int tasks) {
    assertThat(answers).hasSize(tasks);
    assertThat(answers).extracting(Answer::rank).doesNotHaveDuplicates();
    assertThat(answers)
        .extracting(Answer::communicator)
        .containsOnly(answers.get(0).communicator());
    assertThat(answers).extracting(Answer::sum).containsOnly((long) tasks * (tasks + 1));
  }

  /** Tasks of a failed attempt may end after those of the successful one. */
  private static void awaitNoCommunicatorIsLeft() {
    Awaitility.await("no communicator left")
        .atMost(Duration.ofMinutes(3))
        .untilAsserted(
            () ->
                assertThat(Folders.tree(WORKSPACE.sharedMemory()))
                    .noneMatch(path -> path.getFileName().toString().startsWith("communicator-")));
  }

  @Test
  void stagesOneAfterTheOtherHaveCommunicatorsOfTheirOwn() throws IOException {
    Set<String> communicators = new HashSet<>();
    for (int i = 0; i < 4; i++) {
      makeFolder();
      List<Answer> answers = run(2 + i % 2, Mishap.NONE);
      checkSums(answers, 2 + i % 2);
      communicators.add(answers.get(0).communicator());
    }
    assertThat(communicators).hasSize(4);
    awaitNoCommunicatorIsLeft();
  }

  @Test
  void stagesAtTheSameTimeDoNotDisturbEachOther() throws Exception {
    List<CompletableFuture<List<Answer>>> jobs = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      Path folder = Files.createTempDirectory(WORKSPACE.folder(), "notes-");
      BarrierJob job = new BarrierJob(folder.toString(), Mishap.NONE, Buffers.PRIVATE);
      jobs.add(CompletableFuture.supplyAsync(() -> job.run(CLUSTER.context(), 2)));
    }
    Set<String> communicators = new HashSet<>();
    for (CompletableFuture<List<Answer>> job : jobs) {
      List<Answer> answers = job.get(3, TimeUnit.MINUTES);
      checkSums(answers, 2);
      communicators.add(answers.get(0).communicator());
    }
    assertThat(communicators).hasSize(4);
    awaitNoCommunicatorIsLeft();
  }

  @Test
  void aFailedTaskIsNamedAndTheRetryHasANewCommunicator() throws IOException {
    List<Answer> answers = run(2, Mishap.FAILS);
    checkSums(answers, 2);
    assertThat(note("attempt-0-0")).isEqualTo(note("attempt-0-1"));
    assertThat(note("attempt-1-0"))
        .isEqualTo(answers.get(0).communicator())
        .isNotEqualTo(note("attempt-0-0"));
    assertThat(note("failure-0-0"))
        .containsPattern("rank 1 .*failed, as the test asked")
        .containsPattern("rank 1 is task \\d+ on executor \\d+ at ");
    awaitNoCommunicatorIsLeft();
  }

  @Test
  void aKilledExecutorIsNamedAndTheRetrySucceeds() throws Exception {
    CompletableFuture<List<Answer>> job = CompletableFuture.supplyAsync(() -> run(2, Mishap.WAITS));
    await("waiting");
    String victim = note("waiting");
    long start = System.nanoTime();
    CLUSTER.executor(victim).kill();
    await("failure-0-0");
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(TIMEOUT);
    assertThat(note("failure-0-0"))
        .contains("rank 1 is dead")
        .containsPattern("rank 1 is task \\d+ on executor " + victim + " at ");
    checkSums(job.get(3, TimeUnit.MINUTES), 2);
  }

  @Test
  void noThreadStaysWhenTheStagesAreOver() {
    checkSums(run(2, Mishap.NONE), 2);
    Awaitility.await("no thread of communicators in any executor")
        .atMost(Duration.ofMinutes(3))
        .pollInterval(Duration.ofMillis(500))
        .untilAsserted(
            () ->
                assertThat(ExecutorThreads.names(CLUSTER.context(), 4))
                    .isNotEmpty()
                    .noneMatch(CollectivesTest::isOfCollectives));
  }

  /**
   * Returns whether a thread belongs to a communicator, its bootstrap, its lanes or groups, or
   * their monitor.
   */
  private static boolean isOfCollectives(String name) {
    return OF_COLLECTIVES.stream().anyMatch(name::startsWith);
  }

  private void await(String name) {
    Awaitility.await("note " + name)
        .atMost(Duration.ofMinutes(3))
        .until(() -> Files.exists(notes.resolve(name)));
  }

  private String note(String name) throws IOException {
    return Files.readString(notes.resolve(name));
  }
}
