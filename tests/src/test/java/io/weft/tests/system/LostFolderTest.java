package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.Folders;
import io.weft.tests.support.HeldTask;
import io.weft.tests.support.Rows;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.api.java.JavaRDD;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Another program deletes the user's folder in shared memory, as systemd does at a logout: rows
 * stay right, no executor ends, and later shuffles use shared memory again.
 */
class LostFolderTest {
  private static final String SQL =
      "SELECT id, REPEAT('weft', 80) AS s FROM RANGE(0, 40000, 1, 12)";

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .set("spark.weft.memory.segmentSize", "4m")
          .set("spark.weft.batch.rows", "100");

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void betweenTwoJobsOverOneShuffle(String route) {
    List<ExecutorProcess> before = CLUSTER.executors();
    JavaRDD<String> rows = shuffled(route, SQL, "id");
    Rows.assertSame("first job", expected(), sorted(rows));
    long remote = CLUSTER.sum("remoteBlocks");
    loseFolders();
    Rows.assertSame("second job", expected(), sorted(rows));
    assertThat(CLUSTER.sum("remoteBlocks")).as("blocks over the network").isGreaterThan(remote);
    assertSharedMemoryIsUsed(route);
    assertThat(CLUSTER.executors()).isEqualTo(before);
  }

  /** A task is held at a row while the folder goes; others are still to come. */
  @ParameterizedTest
  @CsvSource({"rows, true", "rows, false", "columns, true", "columns, false"})
  void inTheMiddleOfAJob(String route, boolean atWriting) throws Exception {
    List<ExecutorProcess> before = CLUSTER.executors();
    String sql = atWriting ? SQL.replace("SELECT id", "SELECT id + hold(id * 0) AS id") : SQL;
    try (HeldTask held = HeldTask.register(CLUSTER.session(), WORKSPACE, 0)) {
      JavaRDD<String> rows = shuffled(route, sql, atWriting ? "id" : "id + hold(id * 0) AS id");
      held.hold();
      CompletableFuture<List<String>> collected = CompletableFuture.supplyAsync(() -> sorted(rows));
      held.awaitHeld();
      loseFolders();
      held.release();
      Rows.assertSame("the job", expected(), collected.get(3, TimeUnit.MINUTES));
    }
    assertSharedMemoryIsUsed(route);
    assertThat(CLUSTER.executors()).isEqualTo(before);
  }

  private static void loseFolders() {
    Awaitility.await("deletion of all folders")
        .atMost(Duration.ofSeconds(20))
        .until(LostFolderTest::deleteFolders);
    Awaitility.await("new folders")
        .atMost(Duration.ofSeconds(30))
        .until(() -> CLUSTER.executorFolders().size() == WeftCluster.EXECUTORS);
  }

  /** Returns false if an executor created a file meanwhile. */
  private static boolean deleteFolders() {
    try {
      for (Path each : Folders.tree(WORKSPACE.sharedMemory())) {
        if (each.getParent().equals(WORKSPACE.sharedMemory())) {
          Folders.delete(each);
        }
      }
      return true;
    } catch (UncheckedIOException e) {
      return false;
    }
  }

  private static void assertSharedMemoryIsUsed(String route) {
    long inPlace = CLUSTER.sum("sameHostBlocks");
    JavaRDD<String> rows = shuffled(route, SQL, "id");
    Rows.assertSame("a later job", expected(), sorted(rows));
    assertThat(CLUSTER.sum("sameHostBlocks")).as("blocks in place").isGreaterThan(inPlace);
    assertThat(Folders.tree(WORKSPACE.sharedMemory()))
        .anyMatch(file -> file.getFileName().toString().startsWith("segment-"))
        .filteredOn(file -> file.endsWith("token"))
        .hasSize(WeftCluster.EXECUTORS)
        .allMatch(Files::isRegularFile);
  }

  private static JavaRDD<String> shuffled(String route, String sql, String id) {
    Queries.configure(CLUSTER.session(), false);
    CLUSTER.session().conf().set("spark.weft.route", route);
    return CLUSTER
        .session()
        .sql(sql)
        .repartition(5, col("id"))
        .selectExpr(id, "s")
        .javaRDD()
        .map(RowText.FUNCTION);
  }

  private static List<String> expected() {
    return CLUSTER.session().sql(SQL).collectAsList().stream().map(RowText::of).sorted().toList();
  }

  private static List<String> sorted(JavaRDD<String> rows) {
    return rows.collect().stream().sorted().toList();
  }
}
