package io.weft.examples.plans;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.examples.tables.TableSet;
import io.weft.examples.tpch.TpchQuery;
import io.weft.examples.tpch.TpchTables;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Adaptive execution makes the same plans with Weft as without it. */
class FinalPlansTest {
  private static final double SCALE = 0.02;

  /** The plans of Spark's shuffle, by query: the tests of all routes compare with them. */
  private static final Map<String, List<FinalPlan>> WITHOUT_WEFT = new HashMap<>();

  @TempDir static Path folder;

  private static SparkSession session;

  @BeforeAll
  static void start() throws Exception {
    session = open("final-plans");
    register(session, TpchTables.ALL, SCALE, folder);
    skewedTables();
  }

  /** Opens a session that gives adaptive execution decisions to make with tables of megabytes. */
  static SparkSession open(String application) {
    return SparkSession.builder()
        .master("local[2]")
        .appName(application)
        .config("spark.plugins", "io.weft.spark.WeftPlugin")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "localhost")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "24")
        .config("spark.sql.autoBroadcastJoinThreshold", "200KB")
        .config("spark.sql.adaptive.advisoryPartitionSizeInBytes", "128KB")
        .config("spark.sql.adaptive.coalescePartitions.minPartitionSize", "1KB")
        .config("spark.sql.adaptive.coalescePartitions.parallelismFirst", "false")
        .config("spark.sql.adaptive.skewJoin.skewedPartitionFactor", "2")
        .config("spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes", "256KB")
        .config("spark.sql.files.maxPartitionBytes", "512KB")
        .getOrCreate();
  }

  /** Writes the tables of a benchmark, and makes them views. */
  static void register(SparkSession session, TableSet tables, double scale, Path folder)
      throws Exception {
    for (String table : tables.names()) {
      String path = folder.resolve(table).toString();
      tables.write(table, scale, path).run(session);
      session.read().parquet(path).createOrReplaceTempView(table);
    }
  }

  @AfterAll
  static void stop() {
    session.stop();
    SparkSession.clearActiveSession();
    SparkSession.clearDefaultSession();
  }

  /** Nearly all rows have one key. Their payload is constant, or as random as the others'. */
  private static void skewedTables() {
    session
        .range(0, 200_000, 1, 8)
        .selectExpr(
            "if(id % 10 > 0, 7, id % 1000) AS k",
            "id",
            "sha2(string(id), 256) AS random",
            "if(id % 10 > 0, 'constant', sha2(string(id), 256)) AS mixed")
        .write()
        .parquet(folder.resolve("skewed").toString());
    session.read().parquet(folder.resolve("skewed").toString()).createOrReplaceTempView("skewed");
    session
        .range(0, 20_000, 1, 4)
        .selectExpr("id % 1000 AS k", "sha2(string(id), 256) AS name")
        .filter("k <> 7 or name < '1'")
        .createOrReplaceTempView("dims");
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "auto"})
  void plansOfTpchAreEqual(String route) {
    Map<String, String> queries = new LinkedHashMap<>();
    for (TpchQuery query : TpchQuery.values()) {
      queries.put(query.name(), query.text());
    }
    session.conf().set("spark.weft.route", route);
    assertThat(FinalPlan.differences(session, queries, WITHOUT_WEFT)).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void plansOfSkewedJoinsAreEqual(String route) {
    Map<String, String> queries = new LinkedHashMap<>();
    for (String column : new String[] {"id", "random", "mixed"}) {
      queries.put(
          "join of " + column,
          "SELECT /*+ MERGE(d) */ count(s.%s), max(d.name) FROM skewed s JOIN dims d ON s.k = d.k"
              .formatted(column));
    }
    queries.put("rebalance", "SELECT /*+ REBALANCE(k) */ * FROM skewed");
    session.conf().set("spark.weft.route", route);
    assertThat(FinalPlan.differences(session, queries, WITHOUT_WEFT)).isEmpty();
    assertThat(FinalPlan.run(session, queries.get("join of random"), true).skewSplits())
        .isGreaterThan(1);
  }

  /** The comparison itself notices other plans. */
  @Test
  void sizesThatAreFarOffMakeOtherPlans() {
    String query =
        "SELECT k, count(random) FROM (SELECT /*+ REBALANCE(k) */ * FROM skewed) GROUP BY k";
    FinalPlan before = FinalPlan.run(session, query, true);
    session.conf().set("spark.sql.adaptive.advisoryPartitionSizeInBytes", "64KB");
    try {
      assertThat(before.difference(FinalPlan.run(session, query, true))).isPresent();
    } finally {
      session.conf().set("spark.sql.adaptive.advisoryPartitionSizeInBytes", "128KB");
    }
  }
}
