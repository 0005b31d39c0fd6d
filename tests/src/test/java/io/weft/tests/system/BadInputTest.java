package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.Folders;
import io.weft.tests.support.MadeUpContainer;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Machines and containers whose figures are wrong or too small: executors say what was found,
 * where, and what to do, and rows are right. {@link SettingsTest} has the values that are refused,
 * {@link SmallFileSystemsTest} the folders that are read-only.
 */
class BadInputTest {
  private static final long MIB = 1 << 20;

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  private interface Check {
    void run(WeftCluster cluster);
  }

  private static void on(WeftCluster cluster, Check check) {
    cluster.set("spark.weft.memory.segmentSize", "4m").queries(Queries.smoke());
    try {
      cluster.start();
      check.run(cluster);
    } finally {
      cluster.stop();
    }
  }

  private static void assertRowsAreRight(WeftCluster cluster) {
    for (String route : List.of("rows", "columns")) {
      cluster.session().conf().set("spark.weft.route", route);
      Queries.smoke().forEach(cluster::check);
    }
  }

  /** Two tasks at once in a process with one processor, as in a control group of one. */
  @Test
  void limitsThatCannotBeReadOneProcessorAndLocalFoldersInMemory() throws IOException {
    MadeUpContainer container = new MadeUpContainer(WORKSPACE, -1);
    container.set("memory.high", "lots");
    Path local = Files.createTempDirectory(Path.of("/dev/shm"), "tests-of-weft-local-");
    WeftCluster cluster =
        new WeftCluster(WORKSPACE)
            .cores(2)
            .set("spark.local.dir", local.toString())
            .executorOptions("-XX:ActiveProcessorCount=1 " + container.option());
    try {
      on(
          cluster,
          running -> {
            running.awaitLogged("memory.max cannot be read: '-1' is no number of bytes");
            running.awaitLogged("memory.high cannot be read: 'lots' is no number of bytes");
            running.awaitLogged("Set spark.weft.memory.size to what the container has room for");
            running.awaitLogged("Local folders are in memory, on /dev/shm");
            running.awaitLogged("Set spark.local.dir to a disk");
            assertRowsAreRight(running);
            assertThat(running.sum("memoryReserved")).as("in shared memory").isPositive();
          });
      assertThat(Folders.tree(local))
          .as("files of Weft")
          .noneMatch(file -> file.getFileName().toString().contains("weft"));
    } finally {
      Folders.delete(local);
    }
  }

  @Test
  void aContainerOfNothingForASizeThatIsSet() {
    MadeUpContainer container = new MadeUpContainer(WORKSPACE, 0);
    on(
        new WeftCluster(WORKSPACE)
            .set("spark.weft.memory.size", "200m")
            .executorOptions(container.option()),
        cluster -> {
          cluster.awaitLogged(
              "spark.weft.memory.size is 200.0 MiB, but the container leaves nothing for it");
          cluster.awaitLogged("Raise spark.executor.memoryOverhead, or set spark.weft.memory.size");
          assertRowsAreRight(cluster);
          assertBlocksAreOnDisk(cluster);
        });
  }

  /** Even root cannot make a folder there. */
  @Test
  void aMemoryFolderThatHasNoRoom() {
    on(
        new WeftCluster(WORKSPACE).set("spark.weft.memory.folder", "/proc"),
        cluster -> {
          cluster.awaitLogged("Blocks go to Spark's local folders because /proc has 0 B left");
          cluster.awaitLogged("Set spark.weft.memory.folder to a folder of a memory file system");
          assertRowsAreRight(cluster);
          assertThat(Folders.tree(WORKSPACE.sharedMemory())).isEmpty();
        });
  }

  private static void assertBlocksAreOnDisk(WeftCluster cluster) {
    List<Row> rows =
        cluster
            .session()
            .sql("SELECT id, REPEAT(STRING(XXHASH64(id)), 6) AS s FROM RANGE(0, 400000, 1, 4)")
            .repartition(5, col("id"))
            .selectExpr("COUNT(DISTINCT id)", "MAX(LENGTH(s)) > 100")
            .collectAsList();
    assertThat(rows.toString()).isEqualTo("[[400000,true]]");
    assertThat(cluster.sum("memoryReserved")).as("in shared memory").isZero();
    assertThat(cluster.sum("peakUsed")).as("at once, on disk").isGreaterThan(40 * MIB);
  }
}
