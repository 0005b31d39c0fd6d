package io.weft.spark.sql;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec;
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec;
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec;
import org.apache.spark.sql.execution.joins.SortMergeJoinExec;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Adaptive execution treats Weft's stages like Spark's, with the same statistics. */
class AdaptiveExecutionTest {
  @RegisterExtension static final SqlSpark SPARK = new SqlSpark();

  @TempDir static Path folder;

  @BeforeAll
  static void tables() {
    SPARK.with(
        Map.of("spark.weft.enabled", "false"),
        () -> {
          SampleTables.create(SPARK.session(), folder);
          return null;
        });
  }

  @Test
  void smallPartitionsAreReadTogether() {
    String query = "select k, count(*) from facts group by k";
    Dataset<Row> rows = compared(query, Map.of());
    assertThat(reads(rows, AQEShuffleReadExec::hasCoalescedPartition)).isNotEmpty();
  }

  @Test
  void skewedPartitionsAreSplit() {
    Map<String, String> settings =
        Map.of(
            "spark.sql.autoBroadcastJoinThreshold", "-1",
            "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes", "1000",
            "spark.sql.adaptive.skewJoin.skewedPartitionFactor", "1.5",
            "spark.sql.adaptive.advisoryPartitionSizeInBytes", "2000");
    String query = "select /*+ merge(d) */ s.v, s.s, d.name from skewed s join dims d on s.k = d.k";
    Dataset<Row> rows = compared(query, settings);
    assertThat(reads(rows, AQEShuffleReadExec::hasSkewedPartition)).isNotEmpty();
    assertThat(Plans.nodes(Plans.of(rows), SortMergeJoinExec.class))
        .anyMatch(SortMergeJoinExec::isSkewJoin);
  }

  @Test
  void aJoinThatProvesSmallIsBroadcastAndReadLocally() {
    Map<String, String> settings = Map.of("spark.sql.autoBroadcastJoinThreshold", "2000");
    String query =
        "select f.id, f.s, d.name from facts f join"
            + " (select * from dims where reverse(name) like '99 %') d on f.k = d.k";
    Dataset<Row> rows = compared(query, settings);
    assertThat(Plans.nodes(Plans.of(rows), BroadcastHashJoinExec.class)).isNotEmpty();
    assertThat(reads(rows, AQEShuffleReadExec::isLocalRead)).isNotEmpty();
  }

  @Test
  void aRebalanceIsCoalesced() {
    Dataset<Row> rows = compared("select /*+ rebalance */ id, s from facts", Map.of());
    assertThat(reads(rows, read -> read.hasCoalescedPartition())).isNotEmpty();
  }

  @Test
  void emptyStagesFoldTheQuery() {
    Dataset<Row> rows =
        compared(
            "select /*+ merge(n) */ f.id from facts f join nothing n on f.id = n.id", Map.of());
    assertThat(Plans.nodes(Plans.of(rows), SortMergeJoinExec.class)).isEmpty();
  }

  /** Adaptive execution decides on broadcasts by this number. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "select /*+ repartition(5, id) */ id, g, x, f, b, ts from facts",
        "select /*+ repartition(5, id) */ * from facts",
        "select /*+ repartition(5, id) */ * from made",
        "select /*+ repartition_by_range(5, id) */ id, s from facts",
        "select /*+ repartition(5) */ s, arr from facts"
      })
  void theSizeOfAStageIsThatOfSparksRows(String query) {
    long sparks = stageBytes(query, "rows");
    long wefts = stageBytes(query, "columns");
    assertThat(sparks).isPositive();
    assertThat(wefts).isEqualTo(sparks);
  }

  private static long stageBytes(String query, String route) {
    Dataset<Row> rows =
        SPARK.with(Map.of("spark.weft.route", route), () -> collected(SPARK.session().sql(query)));
    List<ShuffleQueryStageExec> stages = Plans.nodes(Plans.of(rows), ShuffleQueryStageExec.class);
    assertThat(stages).hasSize(1);
    assertThat(stages.get(0).getRuntimeStatistics().rowCount().get().toLong()).isEqualTo(3000);
    return stages.get(0).getRuntimeStatistics().sizeInBytes().toLong();
  }

  /** Runs the query on the columns route and compares its result with Spark's. */
  private static Dataset<Row> compared(String query, Map<String, String> settings) {
    Map<String, String> off = new HashMap<>(settings);
    off.put("spark.weft.enabled", "false");
    List<String> sparks = SPARK.with(off, () -> RowTexts.unordered(SPARK.session().sql(query)));
    Map<String, String> on = new HashMap<>(settings);
    on.put("spark.weft.route", "columns");
    return SPARK.with(
        on,
        () -> {
          Dataset<Row> rows = SPARK.session().sql(query);
          assertThat(RowTexts.unordered(rows)).isEqualTo(sparks);
          return rows;
        });
  }

  private static List<AQEShuffleReadExec> reads(
      Dataset<Row> rows, Predicate<AQEShuffleReadExec> kind) {
    return Plans.nodes(Plans.of(rows), AQEShuffleReadExec.class).stream()
        .filter(
            read ->
                read.child() instanceof ShuffleQueryStageExec stage
                    && stage.shuffle() instanceof WeftShuffleExchangeExec)
        .filter(kind)
        .toList();
  }

  private static Dataset<Row> collected(Dataset<Row> rows) {
    rows.collectAsList();
    return rows;
  }
}
