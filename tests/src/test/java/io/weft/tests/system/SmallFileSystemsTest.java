package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.weft.tests.application.InteractiveApplication;
import io.weft.tests.support.Answers;
import io.weft.tests.support.BuildTree;
import io.weft.tests.support.ChildProcess;
import io.weft.tests.support.Conversation;
import io.weft.tests.support.Folders;
import io.weft.tests.support.MountNamespace;
import io.weft.tests.support.SparkHome;
import io.weft.tests.support.Submission;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Weft with a {@code /dev/shm} that is as small as in a container, full, read-only or absent, and
 * with nearly full or read-only local folders. The applications run in a separate view of the file
 * system, with the test's mounts. That needs root; without it the test is skipped with a message.
 */
class SmallFileSystemsTest {
  private static final Path SHARED_MEMORY = Path.of("/dev/shm");
  private static final String MANY_ROWS =
      "SELECT /*+ REPARTITION(4, id) */ id, REPEAT(STRING(XXHASH64(id)), 5) AS s FROM RANGE(0, %d, 1, 4)";

  /** About 100 MB in the arena. */
  private static final String HUNDRED_MEGABYTES =
      "sql SELECT COUNT(*), MAX(LENGTH(s)) FROM (" + MANY_ROWS.formatted(800_000) + ")";

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  @BeforeAll
  static void prepare() {
    Optional<String> reason = MountNamespace.unavailable();
    assumeTrue(reason.isEmpty(), () -> reason.orElseThrow());
    Answers.prepare(Queries.smoke());
  }

  @Test
  void sharedMemoryOfSixtyFourMegabytes() {
    try (MountNamespace view = MountNamespace.open("mount -t tmpfs -o size=64m tmpfs /dev/shm");
        Conversation talk = Conversation.open(WORKSPACE, submission(view))) {
      talk.checkSmoke();
      talk.order(HUNDRED_MEGABYTES);
      talk.quit();
      assertNothingLeft(view);
    }
  }

  @Test
  void sharedMemoryThatIsFull() {
    String script =
        "mount -t tmpfs -o size=64m tmpfs /dev/shm; dd if=/dev/zero of=/dev/shm/other bs=1M 2>/dev/null || true";
    try (MountNamespace view = MountNamespace.open(script);
        Conversation talk = Conversation.open(WORKSPACE, submission(view))) {
      talk.checkSmoke();
      talk.quit();
      assertFellBack(talk.process(), "/dev/shm has");
      Awaitility.await("nothing but the file that filled it")
          .atMost(Duration.ofMinutes(3))
          .untilAsserted(() -> assertThat(Folders.tree(view.outside(SHARED_MEMORY))).hasSize(1));
      WORKSPACE.awaitNoFiles();
    }
  }

  /** Another program uses up all remaining space while executors run: indexes then go elsewhere. */
  @Test
  void sharedMemoryThatFillsUpLater() {
    try (MountNamespace view = MountNamespace.open("mount -t tmpfs -o size=64m tmpfs /dev/shm");
        Conversation talk = Conversation.open(WORKSPACE, submission(view))) {
      talk.checkSmoke();
      Path other = view.outside(SHARED_MEMORY).resolve("other");
      Folders.fill(other);
      talk.checkSmoke();
      talk.quit();
      Folders.delete(other);
      assertNothingLeft(view);
    }
  }

  /** In one JVM: blocks go to the same place as when it is full. */
  @Test
  void sharedMemoryThatIsReadOnly() {
    try (MountNamespace view = MountNamespace.open("mount -t tmpfs -o ro tmpfs /dev/shm");
        Conversation talk = Conversation.open(WORKSPACE, submission(view).master("local[2]"))) {
      talk.checkSmoke();
      talk.quit();
      assertFellBack(talk.process(), "/dev/shm cannot be written to");
      WORKSPACE.awaitNoFiles();
    }
  }

  /** Also in one JVM. */
  @Test
  void sharedMemoryThatIsAbsent() {
    String script =
        """
        mkdir -p /mnt && mount -t tmpfs -o mode=755 tmpfs /mnt
        for device in null zero full random urandom tty; do touch /mnt/$device; mount --bind /dev/$device /mnt/$device; done
        mount --rbind /mnt /dev""";
    try (MountNamespace view = MountNamespace.open(script);
        Conversation talk = Conversation.open(WORKSPACE, submission(view).master("local[2]"))) {
      talk.checkSmoke();
      talk.quit();
      assertFellBack(talk.process(), "/dev/shm does not exist");
      WORKSPACE.awaitNoFiles();
    }
  }

  @Test
  void localFoldersThatAreNearlyFull() {
    String local = WORKSPACE.localFolder().toString();
    String script =
        "mount -t tmpfs -o size=40m tmpfs " + local + "; mount -t tmpfs -o size=64m tmpfs /dev/shm";
    try (MountNamespace view = MountNamespace.open(script);
        Conversation talk = Conversation.open(WORKSPACE, submission(view))) {
      talk.checkSmoke();
      assertThat(
              talk.orderThatFails(
                  "sql SELECT COUNT(*), MAX(LENGTH(s)) FROM ("
                      + MANY_ROWS.formatted(4_000_000)
                      + ")"))
          .contains("spark.weft.memory.size", "spark.local.dir");
      talk.checkSmoke();
      talk.quit();
      assertNothingLeft(view);
    }
  }

  /** Spark itself does not start without a local folder; nothing of Weft keeps it from ending. */
  @Test
  void localFoldersThatAreReadOnly() {
    String local = WORKSPACE.localFolder().toString();
    String script = "mount --bind %1$s %1$s; mount -o remount,bind,ro %1$s".formatted(local);
    try (MountNamespace view = MountNamespace.open(script);
        Conversation talk = Conversation.begin(WORKSPACE, submission(view).master("local[2]"))) {
      assertThat(talk.process().awaitExit(Duration.ofMinutes(3))).isNotZero();
      assertThat(talk.process().output()).contains(local);
    }
  }

  private static Submission submission(MountNamespace view) {
    return new Submission(WORKSPACE, SparkHome.shared(), InteractiveApplication.class)
        .master("local-cluster[2,1,1024]")
        .plugin()
        .jar(BuildTree.weftJar())
        .unset("spark.weft.memory.folder")
        .set("spark.weft.memory.segmentSize", "4m")
        .wrap(view::enter);
  }

  /**
   * The driver logs once per host why it does not use shared memory. In one JVM the executor's own
   * message is in the same log.
   */
  private static void assertFellBack(ChildProcess driver, String reason) {
    List<String> said =
        driver.lines(line -> line.contains(reason) && line.contains(" DriverState: "));
    assertThat(said).as(driver.describe("says " + reason)).hasSize(1);
  }

  private static void assertNothingLeft(MountNamespace view) {
    Awaitility.await("empty /dev/shm")
        .atMost(Duration.ofMinutes(3))
        .untilAsserted(() -> assertThat(Folders.tree(view.outside(SHARED_MEMORY))).isEmpty());
    WORKSPACE.awaitNoFiles();
  }
}
