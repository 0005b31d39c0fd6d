package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** 24 executors on one host. Each reads from all others in place. */
@Tag("slow")
class ManyExecutorsTest {
  private static final int EXECUTORS = 24;

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .executors(EXECUTORS, 512)
          .set("spark.weft.memory.size", "64m")
          .set("spark.weft.memory.segmentSize", "1m");

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void answersAsSparkDoes(String route) {
    CLUSTER.session().conf().set("spark.weft.route", route);
    Queries.compact().forEach(CLUSTER::check);
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void allReadFromAll(String route) {
    CLUSTER.session().conf().set("spark.weft.route", route);
    long inPlace = CLUSTER.sum("sameHostBlocks");
    String sql = "SELECT id, XXHASH64(id) AS h FROM RANGE(0, 500000, 1, 96)";
    Dataset<Row> moved = CLUSTER.session().sql(sql).repartition(96, col("id"));
    assertThat(sums(moved)).isEqualTo(sums(CLUSTER.session().sql(sql)));
    assertThat(CLUSTER.sum("sameHostBlocks") - inPlace).isGreaterThan(96L * 96 * 3 / 4);
    CLUSTER.awaitNothingUsed();
  }

  private static Row sums(Dataset<Row> rows) {
    return rows.selectExpr("COUNT(*)", "SUM(id)", "BIT_XOR(h)").head();
  }
}
