package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.weft.tests.application.InteractiveApplication;
import io.weft.tests.support.Answers;
import io.weft.tests.support.BuildTree;
import io.weft.tests.support.Conversation;
import io.weft.tests.support.RealContainer;
import io.weft.tests.support.SparkHome;
import io.weft.tests.support.Submission;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import java.util.Optional;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * An application with default settings in a container that the kernel enforces: 2200 MB, of which
 * the heap may take 1 GB, and a shuffle of more than all of it. Needs root; without it the test is
 * skipped with a message, and {@link ContainerTest} remains.
 */
@Tag("slow")
class RealContainerTest {
  private static final long LIMIT = 2200L * 1000 * 1000;

  /** About 960 bytes a row: 2.4 GB. */
  private static final String SHUFFLE =
      "sql SELECT COUNT(*), MAX(LENGTH(s)) FROM (SELECT /*+ REPARTITION(8, id) */ id,"
          + " REPEAT(STRING(XXHASH64(id)), 50) AS s FROM RANGE(0, 2500000, 1, 4))";

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  @BeforeAll
  static void prepare() {
    Optional<String> reason = RealContainer.unavailable();
    assumeTrue(reason.isEmpty(), () -> reason.orElseThrow());
    Answers.prepare(Queries.smoke());
  }

  @Test
  void moreThanTheContainerIsShuffled() {
    run("0");
  }

  /** A size that the container does not have is not taken. */
  @Test
  void aSizeBeyondTheContainer() {
    run("8g");
  }

  private static void run(String size) {
    try (RealContainer container = RealContainer.open(LIMIT);
        Conversation talk = Conversation.open(WORKSPACE, submission(container, size))) {
      talk.checkSmoke();
      assertThat(talk.order(SHUFFLE)).isEqualTo("1");
      assertThat(talk.sum("memoryReserved")).as("shared memory").isBetween(1L << 20, LIMIT / 2);
      assertThat(talk.sum("bytesPublished")).isGreaterThan(2_300_000_000L);
      talk.quit();
    }
    WORKSPACE.awaitNoFiles();
  }

  private static Submission submission(RealContainer container, String size) {
    return new Submission(WORKSPACE, SparkHome.shared(), InteractiveApplication.class)
        .master("local[2]")
        .jvmOption("-Xmx1g")
        .plugin()
        .jar(BuildTree.weftJar())
        .set("spark.weft.memory.size", size)
        .wrap(container::enter);
  }
}
