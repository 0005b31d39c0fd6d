package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The budgets of memory and disk are reached in the middle of a job. */
class SpillLimitTest {
  private static final String SQL =
      "SELECT COUNT(*), MAX(LENGTH(s)) FROM (SELECT /*+ REPARTITION(5, id) */ id,"
          + " REPEAT(STRING(XXHASH64(id)), 4) AS s FROM RANGE(0, %d, 1, 16))";

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .set("spark.weft.memory.segmentSize", "1m")
          .set("spark.weft.memory.size", "2m")
          .set("spark.weft.spill.size", "16m");

  /** The error names the settings; published outputs and later queries are as before. */
  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void isAClearErrorAndTheSessionGoesOn(String route) {
    CLUSTER.session().conf().set("spark.weft.route", route);
    assertThatThrownBy(() -> CLUSTER.session().sql(SQL.formatted(1_000_000)).collectAsList())
        .hasStackTraceContaining("no room for")
        .hasStackTraceContaining("spark.weft.memory.size")
        .hasStackTraceContaining("spark.weft.spill.size")
        .hasStackTraceContaining("disk: ");
    CLUSTER.awaitNothingUsed();
    assertThat(CLUSTER.session().sql(SQL.formatted(50_000)).first().getLong(0)).isEqualTo(50_000);
    Queries.compact().forEach(CLUSTER::check);
  }
}
