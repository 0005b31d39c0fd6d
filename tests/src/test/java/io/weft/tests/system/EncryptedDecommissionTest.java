package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.Folders;
import io.weft.tests.support.Rows;
import io.weft.tests.support.TaskLog;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.RowText;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Blocks that are encrypted on an executor's disk stay encrypted on the disk of the executor that
 * takes them over.
 */
@Tag("slow")
class EncryptedDecommissionTest {
  private static final String SEGMENT = Integer.toString(1 << 20);
  private static final String MARKER = "weft-marker-in-plain-text";
  private static final String SQL =
      "SELECT id, CONCAT('" + MARKER + "-', id % 7) AS s FROM RANGE(0, 60000, 1, 4)";

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .migrating()
          .set("spark.io.encryption.enabled", "true")
          .set("spark.weft.route", "rows")
          .set("spark.weft.fetch.timeout", "20s")
          .set("spark.weft.memory.segmentSize", SEGMENT)
          .set("spark.weft.memory.size", SEGMENT);

  @Test
  void whatMovesStaysEncryptedAndIsRead() throws IOException {
    JavaRDD<String> rows =
        CLUSTER.session().sql(SQL).repartition(5, col("id")).javaRDD().map(RowText.FUNCTION);
    List<String> expected =
        CLUSTER.session().sql(SQL).collectAsList().stream().map(RowText::of).sorted().toList();
    Rows.assertSame("first job", expected, sorted(rows));
    assertThat(CLUSTER.sum("bytesSpilled")).isPositive();
    CLUSTER.decommission(CLUSTER.executors().subList(0, 1));
    assertThat(CLUSTER.sum("outputsMigrated")).isPositive();
    try (TaskLog log = TaskLog.open(CLUSTER.context())) {
      Rows.assertSame("second job", expected, sorted(rows));
      assertThat(log.mapTasks()).as("map tasks of the second job").isZero();
    }
    for (Path file : Folders.tree(WORKSPACE.localFolder())) {
      if (Files.isRegularFile(file) && !file.toString().endsWith(".jar")) {
        assertThat(new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1))
            .as(file.toString())
            .doesNotContain(MARKER);
      }
    }
  }

  private static List<String> sorted(JavaRDD<String> rows) {
    return rows.collect().stream().sorted().toList();
  }
}
