package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.InteractiveApplication;
import io.weft.tests.support.Answers;
import io.weft.tests.support.BuildTree;
import io.weft.tests.support.ChildProcess;
import io.weft.tests.support.Conversation;
import io.weft.tests.support.SparkHome;
import io.weft.tests.support.Submission;
import io.weft.tests.support.Workspace;
import java.io.IOException;
import java.net.URI;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Drivers and executors with different jars: the application stops instead of waiting forever, and
 * its log gives the reason and the remedy.
 */
class MismatchedJarsTest {
  private static final Duration LIMIT = Duration.ofMinutes(3);
  private static final String OTHER_VERSION = "9.9.9";

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  @BeforeAll
  static void prepare() {
    Answers.prepare(List.of());
  }

  @Test
  void aJarThatOnlyTheDriverHas() {
    Submission submission = submission().driverClassPath(BuildTree.weftJar());
    assertEndsWith(submission, List.of("io.weft.spark.WeftPlugin", "on the driver only", "--jars"));
  }

  @Test
  void anExecutorOfAnotherVersion() throws IOException {
    Submission submission =
        submission().driverClassPath(jarOfAnotherVersion()).jar(BuildTree.weftJar());
    assertEndsWith(
        submission,
        List.of("runs Weft " + BuildTree.weftVersion(), "runs Weft " + OTHER_VERSION, "--jars"));
  }

  private static void assertEndsWith(Submission submission, List<String> words) {
    try (Conversation talk = Conversation.begin(WORKSPACE, submission)) {
      ChildProcess process = talk.process();
      talk.send("sql SELECT /*+ REPARTITION(3) */ * FROM facts");
      assertThat(process.awaitExit(LIMIT)).as("exit status").isNotZero();
      assertThat(process.lines(line -> words.stream().allMatch(line::contains)))
          .as(process.describe("says what is wrong"))
          .isNotEmpty();
      assertThat(process.lines(line -> line.contains("3 executors in a row ended"))).hasSize(1);
    }
    WORKSPACE.awaitNoFiles();
  }

  private static Submission submission() {
    return new Submission(WORKSPACE, SparkHome.shared(), InteractiveApplication.class)
        .master("local-cluster[2,1,1024]")
        .plugin()
        .set("spark.deploy.maxExecutorRetries", "3");
  }

  private static Path jarOfAnotherVersion() throws IOException {
    Path jar = WORKSPACE.folder().resolve("weft-of-another-version.jar");
    Files.copy(BuildTree.weftJar(), jar);
    try (FileSystem content =
        FileSystems.newFileSystem(URI.create("jar:" + jar.toUri()), Map.of())) {
      Path properties = content.getPath("io/weft/spark/config/weft.properties");
      String text = Files.readString(properties);
      assertThat(text).contains(BuildTree.weftVersion());
      Files.writeString(properties, text.replace(BuildTree.weftVersion(), OTHER_VERSION));
    }
    return jar;
  }
}
