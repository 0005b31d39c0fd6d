package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.weft.tests.application.InteractiveApplication;
import io.weft.tests.support.Answers;
import io.weft.tests.support.BuildTree;
import io.weft.tests.support.ChildProcess;
import io.weft.tests.support.Conversation;
import io.weft.tests.support.Folders;
import io.weft.tests.support.MadeUpContainer;
import io.weft.tests.support.SparkHome;
import io.weft.tests.support.Submission;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * What the user of spark-submit sees of bad settings and bad machines. A wrong value ends the start
 * with all mistakes. What only costs memory or speed is a warning with its reason, figures and
 * advice, once in the driver's log, and the job is right.
 */
class BadInputTest {
  private static final long MIB = 1 << 20;

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  @BeforeAll
  static void prepare() {
    Answers.prepare(Queries.smoke());
  }

  /** One core, a limit that is no number, a file as folder, local folders in memory, 64 TiB. */
  @Test
  void aBadMachineIsAWarningForEachFault() throws IOException {
    Path memory = WORKSPACE.sharedMemory();
    assumeTrue(Files.getFileStore(memory).type().equals("tmpfs"), memory + " is not in memory");
    Path file = Files.createFile(WORKSPACE.folder().resolve("file"));
    Path local = Files.createDirectory(memory.resolve("local"));
    MadeUpContainer container = new MadeUpContainer(WORKSPACE, MIB).garble("lots");
    Submission submission =
        submission(container.option() + " -XX:ActiveProcessorCount=1")
            .set("spark.weft.memory.folder", file.toString())
            .set("spark.weft.memory.size", "64t")
            .set("spark.local.dir", local.toString());
    try (Conversation talk = Conversation.open(WORKSPACE, submission)) {
      talk.checkSmoke();
      talk.quit();
      assertWarned(
          talk.process(),
          file + " is not a folder. Set spark.weft.memory.folder to a folder of a memory file",
          "spark.weft.memory.size is 64.0 TiB, but of ",
          "all programs together may fill",
          "memory.max cannot be read: 'lots' is no number of bytes, so it counts as no limit. Set"
              + " spark.weft.memory.size",
          "Local folders are in memory, on /dev/shm (tmpfs)",
          "Set spark.local.dir to a disk");
    } finally {
      Folders.delete(local);
    }
  }

  /** A container of 1500 MiB, of which a JVM with a heap of 1 GiB leaves less than 92 MiB. */
  @Test
  void aSizeThatTheContainerDoesNotHave() {
    Submission submission =
        submission(new MadeUpContainer(WORKSPACE, 1500 * MIB).option())
            .set("spark.weft.memory.size", "8g");
    try (Conversation talk = Conversation.open(WORKSPACE, submission)) {
      talk.checkSmoke();
      talk.quit();
      assertWarned(
          talk.process(),
          "spark.weft.memory.size is 8.0 GiB, but the container leaves",
          "of 1.5 GiB in use",
          "Raise spark.executor.memoryOverhead, or set spark.weft.memory.size to 0");
    }
  }

  @Test
  void wrongValuesEndTheStartWithAllMistakes() {
    Submission submission =
        submission("")
            .set("spark.weft.memory.size", "lots")
            .set("spark.weft.memory.hostFraction", "2")
            .set("spark.weft.spill.size", "-5")
            .set("spark.weft.memory.folder", "here")
            .set("spark.weft.fetch.timeout", "soon")
            .set("spark.weft.memory.sise", "1g");
    try (Conversation talk = Conversation.begin(WORKSPACE, submission)) {
      ChildProcess process = talk.process();
      assertThat(process.awaitExit(Duration.ofMinutes(3))).as(process.output()).isEqualTo(1);
      assertThat(process.output())
          .contains("memory.size is set to 'lots', but must be 0 (choose) or a size from 1m to")
          .contains("memory.hostFraction is set to '2', but must be a fraction from 0.01 to 1.0")
          .contains("spill.size is set to '-5', but must be a size from 0")
          .contains("memory.folder is set to 'here', but must be empty (choose) or an absolute")
          .contains("fetch.timeout is set to 'soon', but must be a duration from 100ms")
          .contains("did you mean spark.weft.memory.size?");
    }
  }

  private static Submission submission(String executorOptions) {
    return new Submission(WORKSPACE, SparkHome.shared(), InteractiveApplication.class)
        .master("local-cluster[2,1,1024]")
        .plugin()
        .jar(BuildTree.weftJar())
        .executorOptions(executorOptions);
  }

  /** Both executors say the same of their common host, so that one line has all texts. */
  private static void assertWarned(ChildProcess driver, String... texts) {
    assertThat(driver.lines(line -> line.contains(" DriverState: Executor ")))
        .as(driver.describe("warns"))
        .singleElement()
        .asString()
        .contains(texts);
  }
}
