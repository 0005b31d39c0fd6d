package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.RetainedMemory;
import io.weft.tests.support.Folders;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Spark encrypts its local folders, and memory is small: nearly every block is encrypted and
 * decrypted, and all rows stay right. A subclass sets the route of the blocks.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class EncryptedDisksContract {
  private static final int SEGMENT = 1 << 20;
  private static final int ROWS = 200_000;
  private static final String MARKER = "weft-marker-in-plain-text";
  private static final String MOVED =
      "SELECT id, XXHASH64(id) AS h, CONCAT('%s-', id %% 7) AS s FROM RANGE(0, %d, 1, 4)"
          .formatted(MARKER, ROWS);
  private static final String SUMS =
      "SELECT COUNT(*), SUM(id), SUM(CRC32(CONCAT(h, s))), COUNT(DISTINCT s) FROM %s";

  @RegisterExtension
  @Order(1)
  final Workspace workspace = new Workspace();

  @RegisterExtension
  @Order(2)
  final WeftCluster cluster;

  EncryptedDisksContract(String transport) {
    cluster =
        new WeftCluster(workspace)
            .set("spark.io.encryption.enabled", "true")
            .set("spark.io.encryption.keySizeBits", "256")
            .set("spark.weft.transport", transport)
            .set("spark.weft.memory.segmentSize", Integer.toString(SEGMENT))
            .set("spark.weft.memory.size", Integer.toString(SEGMENT))
            .set("spark.weft.spill.privateMemory", Integer.toString(32 * SEGMENT));
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void answersAreThoseOfSparksShuffle(String route) {
    cluster.session().conf().set("spark.weft.route", route);
    long published = cluster.sum("outputsPublished");
    Queries.compact().forEach(cluster::check);
    assertThat(cluster.sum("outputsPublished")).as("map outputs").isGreaterThan(published);
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void whatIsSpilledIsEncryptedAndComesBack(String route) {
    cluster.session().conf().set("spark.weft.route", route);
    long spilled = cluster.sum("bytesSpilled");
    Row wanted = cluster.session().sql(SUMS.formatted("(" + MOVED + ")")).collectAsList().get(0);
    assertThat(sumsOfMoved()).isEqualTo(wanted);
    assertThat(cluster.sum("bytesSpilled") - spilled).isGreaterThan(4L * SEGMENT);
    assertThat(filesWithTheMarker()).isEmpty();
    assertThat(cluster.sum("privateReserved"))
        .as("private memory")
        .isLessThanOrEqualTo(32L * SEGMENT * WeftCluster.EXECUTORS);
  }

  private Row sumsOfMoved() {
    Dataset<Row> moved = cluster.session().sql(MOVED).repartition(5, col("h"));
    moved.createOrReplaceTempView("moved");
    return cluster.session().sql(SUMS.formatted("moved")).collectAsList().get(0);
  }

  /** Fills the memory as spilled memory of GPUs and the chunks of feeds would. */
  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void mapTasksAndReadersContinueWhenRetainedMemoryIsFull(String route) {
    cluster.session().conf().set("spark.weft.route", route);
    cluster.session().conf().set("spark.weft.enabled", "false");
    Row sparks = sumsOfMoved();
    cluster.session().conf().set("spark.weft.enabled", "true");
    long spilled = cluster.sum("bytesSpilled");
    try (RetainedMemory kept = RetainedMemory.fill(cluster.context())) {
      assertThat(cluster.sum("privateReserved"))
          .as("private memory that is retained")
          .isGreaterThanOrEqualTo(16L * SEGMENT * WeftCluster.EXECUTORS);
      assertThat(sumsOfMoved()).as("beside Spark's encrypted shuffle").isEqualTo(sparks);
      Queries.compact().subList(0, 3).forEach(cluster::check);
    }
    assertThat(cluster.sum("bytesSpilled") - spilled).isGreaterThan(4L * SEGMENT);
  }

  private List<Path> filesWithTheMarker() {
    return Folders.tree(workspace.localFolder()).stream()
        .filter(file -> Files.isRegularFile(file) && !file.toString().endsWith(".jar"))
        .filter(EncryptedDisksContract::hasTheMarker)
        .toList();
  }

  private static boolean hasTheMarker(Path file) {
    try {
      return new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1).contains(MARKER);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
