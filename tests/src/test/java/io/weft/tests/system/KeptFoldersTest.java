package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.store.Leftover;
import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.MapOutputs;
import io.weft.tests.support.Rows;
import io.weft.tests.support.TaskLog;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.io.IOException;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** All executors of a host are killed. Their replacements adopt what they have left. */
@Tag("slow")
class KeptFoldersTest {
  private static final int MAP_TASKS = 8;
  private static final String SQL =
      "SELECT id, REPEAT(STRING(id), 12) AS s FROM RANGE(0, 30000, 1, 8)";

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .set("spark.weft.adopt.enabled", "true")
          .set("spark.weft.adopt.keepTime", "2min")
          .set("spark.weft.route", "rows")
          .set("spark.weft.fetch.timeout", "20s");

  @Test
  void replacementsAdoptFoldersThatASweepOfAnotherApplicationHasKept() throws IOException {
    Queries.configure(CLUSTER.session(), false);
    List<String> expected =
        CLUSTER.session().sql(SQL).collectAsList().stream().map(RowText::of).sorted().toList();
    JavaRDD<String> rows =
        CLUSTER.session().sql(SQL).repartition(9, col("id")).javaRDD().map(RowText.FUNCTION);
    Rows.assertSame("before", expected, sorted(rows));
    List<ExecutorProcess> victims = CLUSTER.executors();
    victims.forEach(ExecutorProcess::kill);
    // The second one may have adopted the outputs of the first before it died too.
    assertThat(Leftover.sweep(WORKSPACE.sharedMemory())).as("swept").hasSizeLessThan(2);
    victims.forEach(victim -> MapOutputs.awaitElsewhere(victim, MAP_TASKS));
    CLUSTER.awaitExecutors();
    try (TaskLog log = TaskLog.open(CLUSTER.context())) {
      Rows.assertSame("after the deaths", expected, sorted(rows));
      assertThat(log.mapTasks()).as("map tasks").isZero();
    }
  }

  private static List<String> sorted(JavaRDD<String> rows) {
    return rows.collect().stream().sorted().toList();
  }
}
