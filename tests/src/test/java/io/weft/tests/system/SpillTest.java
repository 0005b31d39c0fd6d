package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.Folders;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.nio.file.Files;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A memory budget of two segments: most blocks are spilled to Spark's local folders, and all rows
 * stay right.
 */
class SpillTest {
  private static final int SEGMENT = 1 << 20;

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .set("spark.weft.memory.segmentSize", Integer.toString(SEGMENT))
          .set("spark.weft.memory.size", Integer.toString(2 * SEGMENT));

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void answersStayRight(String route) {
    CLUSTER.session().conf().set("spark.weft.route", route);
    Queries.compact().forEach(CLUSTER::check);
  }

  @Test
  void spilledBlocksAreInTheLocalFolders() {
    CLUSTER.session().conf().set("spark.weft.route", "rows");
    String sql =
        "SELECT id, XXHASH64(id) AS h, REPEAT('weft', 10) AS s FROM RANGE(0, 400000, 1, 4)";
    Dataset<Row> moved = CLUSTER.session().sql(sql).repartition(5, col("h"));
    JavaRDD<Row> rows = moved.javaRDD();
    assertThat(rows.count()).isEqualTo(400000);
    assertThat(bytesInSharedMemory())
        .as("bytes in shared memory")
        .isLessThanOrEqualTo(2L * WeftCluster.EXECUTORS * SEGMENT + SEGMENT);
    assertThat(bytesOnDisk()).as("bytes on disk").isGreaterThan(10L * SEGMENT);
    assertThat(rows.map(RowText.FUNCTION).distinct().count()).as("distinct rows").isEqualTo(400000);
  }

  /** All of it is in flight at once: 100 MB, with memory for 4. */
  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void aShuffleOfTwentyTimesTheMemory(String route) {
    CLUSTER.session().conf().set("spark.weft.route", route);
    long before = CLUSTER.sum("bytesPublished");
    String sql =
        "SELECT COUNT(*) AS n, SUM(id) AS ids, BIT_XOR(XXHASH64(id, s)) AS rows FROM "
            + "(SELECT %s id, REPEAT(STRING(XXHASH64(id)), 4) AS s FROM RANGE(0, 1000000, 1, 8))";
    Row expected = CLUSTER.session().sql(sql.formatted("")).first();
    Row found = CLUSTER.session().sql(sql.formatted("/*+ REPARTITION(7, id) */")).first();
    assertThat(found).isEqualTo(expected);
    assertThat(CLUSTER.sum("bytesPublished") - before)
        .as("bytes of the shuffle")
        .isGreaterThan(20L * 2 * WeftCluster.EXECUTORS * SEGMENT);
  }

  private static long bytesInSharedMemory() {
    return Folders.tree(WORKSPACE.sharedMemory()).stream()
        .filter(file -> Files.isRegularFile(file, java.nio.file.LinkOption.NOFOLLOW_LINKS))
        .mapToLong(file -> file.toFile().length())
        .sum();
  }

  private static long bytesOnDisk() {
    return WORKSPACE.files().stream()
        .filter(file -> file.startsWith(WORKSPACE.localFolder()))
        .filter(Files::isRegularFile)
        .mapToLong(file -> file.toFile().length())
        .sum();
  }
}
