package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.InteractiveApplication;
import io.weft.tests.support.Answers;
import io.weft.tests.support.BuildTree;
import io.weft.tests.support.Conversation;
import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.SparkHome;
import io.weft.tests.support.Submission;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Adoption and copies on the oldest and the newest Spark: they change Spark's map output tracker,
 * which differs between versions. No map task runs again.
 */
class DeathsOnOtherSparksTest {
  private static final int MAP_TASKS = 6;
  private static final String QUERY =
      "SELECT id, repeat(string(id), 12) AS s FROM range(0, 30000, 1, " + MAP_TASKS + ")";

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  @ParameterizedTest
  @ValueSource(strings = {"4.0", "4.2"})
  void noMapTaskRunsAgainOn(String distribution) throws IOException {
    Answers.prepare(Queries.compact());
    SparkHome home =
        SparkHome.assemble(WORKSPACE.folder().resolve(distribution), distribution, List.of());
    Submission submission =
        new Submission(WORKSPACE, home, InteractiveApplication.class)
            .master("local-cluster[2,1,1024]")
            .plugin()
            .set("spark.weft.adopt.enabled", "true")
            .set("spark.weft.survive.path", WORKSPACE.folder().resolve("copies").toUri().toString())
            .jar(BuildTree.weftJar());
    try (Conversation talk = Conversation.open(WORKSPACE, submission)) {
      assertThat(talk.order("version")).startsWith(distribution);
      String rows = talk.order("shuffle " + QUERY);
      awaitCopies(talk);
      ExecutorProcess victim = executors(talk).get(0);
      victim.kill();
      awaitPlaces(talk, List.of(victim));
      assertThat(talk.order("again")).as("after one death").isEqualTo(rows + ", 0 map tasks");
      List<ExecutorProcess> all = executors(talk);
      all.forEach(ExecutorProcess::kill);
      awaitPlaces(talk, all);
      assertThat(talk.order("again")).as("after all deaths").isEqualTo(rows + ", 0 map tasks");
      talk.quit();
    }
    WORKSPACE.awaitNoFiles();
  }

  private static List<ExecutorProcess> executors(Conversation talk) {
    return ExecutorProcess.await(ProcessHandle.of(talk.process().pid()).orElseThrow(), 2);
  }

  private static void awaitCopies(Conversation talk) {
    Awaitility.await("copies of all outputs")
        .atMost(Duration.ofMinutes(1))
        .untilAsserted(() -> assertThat(talk.sum("outputsCopied")).isEqualTo(MAP_TASKS));
  }

  private static void awaitPlaces(Conversation talk, List<ExecutorProcess> dead) {
    List<String> ids = dead.stream().map(ExecutorProcess::id).toList();
    Awaitility.await("places without executors " + ids)
        .atMost(Duration.ofMinutes(1))
        .untilAsserted(
            () ->
                assertThat(talk.order("places").split(" "))
                    .hasSize(MAP_TASKS)
                    .doesNotContain("none")
                    .doesNotContainAnyElementsOf(ids));
  }
}
