package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.Rows;
import io.weft.tests.support.TaskLog;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.RowText;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** All executors are decommissioned at once, and Spark's fallback storage is on. */
@Tag("slow")
class FallbackDecommissionTest {
  private static final String SQL =
      "SELECT id, REPEAT(STRING(id), 3) AS s FROM RANGE(0, 40000, 1, 8) WHERE id >= 7500";

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .migrating()
          .copying("spark.storage.decommission.fallbackStorage.path")
          .set("spark.weft.survive.enabled", "true")
          .set("spark.weft.route", "rows")
          .set("spark.weft.fetch.timeout", "20s");

  @Test
  void blocksAreReadFromTheFallbackStorage() {
    JavaRDD<String> rows =
        CLUSTER.session().sql(SQL).repartition(9, col("id")).javaRDD().map(RowText.FUNCTION);
    List<String> expected =
        CLUSTER.session().sql(SQL).collectAsList().stream().map(RowText::of).sorted().toList();
    Rows.assertSame("first job", expected, sorted(rows));
    CLUSTER.decommission(CLUSTER.executors());
    try (TaskLog log = TaskLog.open(CLUSTER.context())) {
      Rows.assertSame("second job", expected, sorted(rows));
      assertThat(log.mapTasks()).as("map tasks of the second job").isZero();
      assertThat(log.fetchFailures()).isEmpty();
    }
    assertThat(CLUSTER.sum("copyBytesRead")).isPositive();
  }

  private static List<String> sorted(JavaRDD<String> rows) {
    return rows.collect().stream().sorted().toList();
  }
}
