package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.InteractiveApplication;
import io.weft.tests.support.Answers;
import io.weft.tests.support.BuildTree;
import io.weft.tests.support.Conversation;
import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.Folders;
import io.weft.tests.support.Signals;
import io.weft.tests.support.SparkHome;
import io.weft.tests.support.Submission;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Several applications on one host, at the same time and in sequence: none affects the files of
 * another that still runs.
 */
class ManyApplicationsTest {
  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  @BeforeAll
  static void prepare() {
    Answers.prepare(Queries.compact());
  }

  @Test
  void twoAtOnce() {
    try (Conversation first = Conversation.begin(WORKSPACE, submission());
        Conversation second = Conversation.begin(WORKSPACE, submission())) {
      int one = first.send("compact");
      int two = second.send("compact");
      first.await(one);
      second.await(two);
      first.compareCompact();
      first.quit();
      second.compareCompact();
      awaitAliveFolders("the second application");
      second.checkSmoke();
      second.quit();
    }
    WORKSPACE.awaitNoFiles();
  }

  @Test
  void filesOfAKilledApplicationAreDeletedByTheNext() {
    try (Conversation killed = Conversation.open(WORKSPACE, submission())) {
      killed.order("answer hash by int");
      ProcessHandle driver = ProcessHandle.of(killed.process().pid()).orElseThrow();
      List<ExecutorProcess> executors = ExecutorProcess.await(driver, 2);
      Signals.stop(driver.pid());
      executors.forEach(ExecutorProcess::kill);
      Signals.kill(driver.pid());
    }
    assertThat(aliveFolders()).as("folders of the killed executors").hasSize(2);
    try (Conversation next = Conversation.open(WORKSPACE, submission())) {
      next.order("statistics");
      awaitAliveFolders("the next application");
      next.quit();
    }
    WORKSPACE.awaitNoFiles();
  }

  @Test
  void executorsWhoseDriverWasKilledCleanUp() {
    try (Conversation killed = Conversation.open(WORKSPACE, submission())) {
      killed.order("answer hash by int");
      ProcessHandle driver = ProcessHandle.of(killed.process().pid()).orElseThrow();
      List<ExecutorProcess> executors = ExecutorProcess.await(driver, 2);
      Signals.kill(driver.pid());
      executors.forEach(executor -> executor.awaitEnd(Duration.ofMinutes(3)));
    }
    WORKSPACE.awaitNoFiles();
  }

  private static void awaitAliveFolders(String whose) {
    Awaitility.await("folders of " + whose + " alone")
        .atMost(Duration.ofMinutes(3))
        .untilAsserted(() -> assertThat(aliveFolders()).hasSize(2));
  }

  private static List<Path> aliveFolders() {
    return Folders.tree(WORKSPACE.sharedMemory()).stream()
        .filter(file -> file.endsWith("alive"))
        .toList();
  }

  private static Submission submission() {
    return new Submission(WORKSPACE, SparkHome.shared(), InteractiveApplication.class)
        .master("local-cluster[2,1,1024]")
        .plugin()
        .jar(BuildTree.weftJar());
  }
}
