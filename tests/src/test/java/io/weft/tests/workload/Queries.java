package io.weft.tests.workload;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;

/**
 * The queries whose answers must not depend on the shuffle: each kind of partitioning, each shape
 * of stage that adaptive execution makes, each type. Sums are over values that add up exactly in
 * any order.
 */
public final class Queries {
  private static final String MIN_PARTITION =
      "spark.sql.adaptive.coalescePartitions.minPartitionSize";
  private static final String ADVISORY_BYTES = "spark.sql.adaptive.advisoryPartitionSizeInBytes";

  private Queries() {}

  /** Every query. */
  public static List<Query> all() {
    return Stream.of(
            partitionings(), types(), aggregates(), joins(), orders(), shapes(), adaptive())
        .flatMap(List::stream)
        .toList();
  }

  /**
   * A few queries that together cover every part, for the many clusters that have no time for more.
   */
  public static List<Query> compact() {
    List<String> names =
        List.of(
            "hash by int",
            "hash of columns",
            "range by string",
            "special by hash",
            "sort-merge join",
            "skew join",
            "cached table");
    return named(names);
  }

  /** Two of the compact ones, for tests of whether anything works at all. */
  public static List<Query> smoke() {
    return named(List.of("hash by int", "sort-merge join"));
  }

  private static List<Query> named(List<String> names) {
    List<Query> chosen = all().stream().filter(query -> names.contains(query.name())).toList();
    if (chosen.size() != names.size()) {
      throw new IllegalStateException("One of " + names + " is missing among " + all());
    }
    return chosen;
  }

  /** Session settings with which a few kilobytes make as many tasks as gigabytes otherwise do. */
  public static Map<String, String> settings(boolean adaptive) {
    Map<String, String> settings = new LinkedHashMap<>();
    settings.put("spark.sql.adaptive.enabled", Boolean.toString(adaptive));
    settings.put("spark.sql.shuffle.partitions", "6");
    settings.put("spark.sql.autoBroadcastJoinThreshold", "-1");
    settings.put(ADVISORY_BYTES, "32KB");
    settings.put(MIN_PARTITION, "1KB");
    return settings;
  }

  /** Applies {@link #settings} to a session. */
  public static void configure(SparkSession session, boolean adaptive) {
    settings(adaptive).forEach(session.conf()::set);
  }

  private static List<Query> partitionings() {
    return List.of(
        Query.of(
            "hash by int",
            "SELECT SPARK_PARTITION_ID(), * FROM (SELECT /*+ REPARTITION(7, k) */ * FROM facts)"),
        Query.of(
            "hash by string",
            "SELECT SPARK_PARTITION_ID(), * FROM (SELECT /*+ REPARTITION(5, s) */ * FROM facts)"),
        Query.of(
            "hash by decimals",
            "SELECT SPARK_PARTITION_ID(), * FROM (SELECT /*+ REPARTITION(5, dec12, dec38) */ * FROM facts)"),
        Query.of(
            "hash by floats",
            "SELECT SPARK_PARTITION_ID(), * FROM (SELECT /*+ REPARTITION(5, d, f, weird) */ * FROM facts)"),
        Query.of(
            "hash by times",
            "SELECT SPARK_PARTITION_ID(), * FROM (SELECT /*+ REPARTITION(5, day, ts, ntz) */ * FROM facts)"),
        Query.of(
            "hash by all others",
            "SELECT SPARK_PARTITION_ID(), * FROM (SELECT /*+ REPARTITION(5, bool, tiny, small, big, bin, nothing, same) */ * FROM facts)"),
        Query.of("hash by an expression", "SELECT * FROM facts DISTRIBUTE BY k + 1, UPPER(s)"),
        Query.of(
            "hash of columns",
            "SELECT SPARK_PARTITION_ID(), * FROM (SELECT /*+ REPARTITION(7, k, s) */ * FROM facts_parquet)"),
        Query.of(
            "hash by struct",
            "SELECT SPARK_PARTITION_ID(), * FROM (SELECT /*+ REPARTITION(5, struct, arrays) */ * FROM nested)"),
        Query.of("round robin", "SELECT /*+ REPARTITION(9) */ * FROM facts"),
        Query.of("round robin of columns", "SELECT /*+ REPARTITION(9) */ * FROM facts_parquet"),
        Query.of(
            "range by string",
            "SELECT SPARK_PARTITION_ID(), * FROM (SELECT /*+ REPARTITION_BY_RANGE(5, s, id) */ * FROM facts WHERE id < 300)"),
        Query.of(
            "range of columns",
            "SELECT /*+ REPARTITION_BY_RANGE(5, dec38) */ * FROM facts_parquet"),
        Query.of("rebalance", "SELECT /*+ REBALANCE(k) */ * FROM facts"),
        Query.of("rebalance round robin", "SELECT /*+ REBALANCE */ * FROM facts_parquet"),
        Query.of("single partition", "SELECT /*+ REPARTITION(1) */ * FROM facts"),
        Query.of(
            "more partitions than rows",
            "SELECT /*+ REPARTITION(64, id) */ * FROM facts WHERE id < 20"),
        Query.of(
            "two in a row",
            "SELECT /*+ REPARTITION(3, s) */ * FROM (SELECT /*+ REPARTITION(8) */ * FROM facts_parquet)"));
  }

  private static List<Query> types() {
    List<Query> queries = new ArrayList<>();
    queries.add(Query.of("nested by hash", "SELECT /*+ REPARTITION(5, k) */ * FROM nested"));
    queries.add(Query.of("nested round robin", "SELECT /*+ REPARTITION(5) */ * FROM nested"));
    queries.add(Query.of("special by hash", "SELECT /*+ REPARTITION(5, id) */ * FROM special"));
    queries.add(Query.of("special round robin", "SELECT /*+ REPARTITION(5) */ * FROM special"));
    queries.add(
        Query.of(
            "hash by collation",
            "SELECT SPARK_PARTITION_ID(), * FROM (SELECT /*+ REPARTITION(5, lcase, unicode) */ * FROM special)"));
    queries.add(
        Query.of(
            "group by collation",
            "SELECT lcase, COUNT(*) FROM (SELECT LOWER(lcase) AS lcase FROM special) GROUP BY lcase"));
    queries.add(
        Query.of(
            "group by intervals",
            "SELECT months, micros, COUNT(*) FROM special GROUP BY months, micros"));
    queries.add(Query.of("every decimal", everyDecimal()));
    queries.add(
        Query.of(
            "only nulls",
            "SELECT /*+ REPARTITION(5, id) */ nothing, CAST(NULL AS STRING), CAST(NULL AS ARRAY<INT>), CAST(NULL AS DECIMAL(20, 2)) FROM facts"));
    queries.add(
        Query.of(
            "only constants",
            "SELECT /*+ REPARTITION(5) */ 1, 'one', DATE'2001-01-01', ARRAY(1, 2), 1.5BD FROM facts"));
    return queries;
  }

  private static String everyDecimal() {
    StringBuilder sql = new StringBuilder("SELECT /*+ REPARTITION(5, id) */ id");
    for (int precision = 1; precision <= 38; precision++) {
      sql.append(", TRY_CAST(IF(id % 7 = 0, NULL, id) AS DECIMAL(").append(precision).append(", ");
      sql.append(precision / 3).append("))");
    }
    return sql.append(" FROM facts WHERE id < 500").toString();
  }

  private static List<Query> aggregates() {
    return List.of(
        Query.of(
            "group by string",
            "SELECT s, COUNT(*), SUM(id), MIN(dec38), MAX(ts), SUM(d) FROM facts GROUP BY s"),
        Query.of(
            "group columns",
            "SELECT day, bool, COUNT(tiny), SUM(dec12), AVG(small) FROM facts_parquet GROUP BY day, bool"),
        Query.of(
            "group by skewed",
            "SELECT skewed, COUNT(DISTINCT s), COUNT(DISTINCT day) FROM facts GROUP BY skewed"),
        Query.of("count all", "SELECT COUNT(*), COUNT(s), SUM(big % 1000) FROM facts"),
        Query.of("count nothing", "SELECT COUNT(*), MAX(s) FROM nothing"),
        Query.of("group nothing", "SELECT s, COUNT(*) FROM nothing GROUP BY s"),
        Query.of(
            "rollup",
            "SELECT k % 5, bool, SUM(id), GROUPING_ID() FROM facts GROUP BY ROLLUP (k % 5, bool)"),
        Query.of(
            "cube",
            "SELECT k % 3, tiny % 3, COUNT(*) FROM facts_parquet GROUP BY CUBE (k % 3, tiny % 3)"),
        Query.of(
            "collected arrays",
            "SELECT k, SORT_ARRAY(COLLECT_LIST(s)), SORT_ARRAY(COLLECT_SET(day)) FROM facts GROUP BY k"),
        Query.of("distinct", "SELECT DISTINCT k, s FROM facts_parquet"),
        Query.of(
            "pivot",
            "SELECT * FROM (SELECT k, bool, id FROM facts) PIVOT (SUM(id) FOR bool IN (true, false))"));
  }

  private static List<Query> joins() {
    return List.of(
        Query.of(
            "sort-merge join",
            "SELECT /*+ MERGE(d) */ f.id, f.s, d.name, d.weight FROM facts f JOIN dims d ON f.k = d.k"),
        Query.of(
            "left join", "SELECT f.id, d.name FROM facts_parquet f LEFT JOIN dims d ON f.k = d.k"),
        Query.of(
            "full join",
            "SELECT f.id, d.name FROM (SELECT * FROM facts WHERE k < 50) f FULL JOIN (SELECT * FROM dims WHERE k > 30) d ON f.k = d.k"),
        Query.of(
            "hash join",
            "SELECT /*+ SHUFFLE_HASH(d) */ f.id, d.name FROM facts f JOIN dims d ON f.k = d.k"),
        Query.of(
            "broadcast join",
            "SELECT /*+ BROADCAST(d) */ d.name, SUM(f.id) FROM facts_parquet f JOIN dims d ON f.k = d.k GROUP BY d.name"),
        Query.of(
            "semi join", "SELECT id FROM facts WHERE k IN (SELECT k FROM dims WHERE weight > 300)"),
        Query.of(
            "anti join",
            "SELECT id FROM facts_parquet WHERE NOT EXISTS (SELECT 1 FROM dims WHERE dims.k = facts_parquet.k)"),
        Query.of(
            "join by string and day",
            "SELECT a.id, b.id FROM facts a JOIN facts_parquet b ON a.s = b.s AND a.day = b.day WHERE a.id < 800 AND b.id > 700"),
        Query.of(
            "self join",
            "SELECT COUNT(*), SUM(a.id * b.id) FROM facts a JOIN facts b ON a.k = b.k"),
        Query.of(
            "join with nothing", "SELECT f.id, n.s FROM facts f LEFT JOIN nothing n ON f.k = n.k"),
        Query.of(
            "join of sources",
            "SELECT c.id, p.s FROM facts_cached c JOIN facts_parquet p ON c.id = p.id WHERE p.k < 20"));
  }

  private static List<Query> orders() {
    return List.of(
        Query.ordered("sort by decimal", "SELECT dec38, s, id FROM facts ORDER BY dec38, id"),
        Query.ordered(
            "sort by string",
            "SELECT s, weird, id FROM facts_parquet ORDER BY s DESC NULLS LAST, id"),
        Query.ordered("sort by floats", "SELECT weird, f, id FROM facts ORDER BY weird, f, id"),
        Query.ordered("top", "SELECT ts, id FROM facts ORDER BY ts DESC, id LIMIT 17"),
        Query.ordered("offset", "SELECT id FROM facts_parquet ORDER BY id LIMIT 20 OFFSET 1990"),
        Query.of("limit", "SELECT COUNT(*) FROM (SELECT * FROM facts LIMIT 777)"),
        Query.of(
            "window",
            "SELECT id, SUM(id) OVER (PARTITION BY k ORDER BY id ROWS 3 PRECEDING), RANK() OVER (PARTITION BY s ORDER BY day) FROM facts"),
        Query.of(
            "window of columns",
            "SELECT id, LAG(s, 2) OVER (PARTITION BY skewed ORDER BY id) FROM facts_parquet"));
  }

  private static List<Query> shapes() {
    return List.of(
        Query.of("nothing by hash", "SELECT /*+ REPARTITION(5, k) */ * FROM nothing"),
        Query.of("nothing round robin", "SELECT /*+ REPARTITION(5) */ * FROM nothing"),
        Query.of(
            "reused exchange",
            "WITH t AS (SELECT k, SUM(id) AS total FROM facts GROUP BY k) SELECT a.k, a.total, b.total FROM t a JOIN t b ON a.k = b.k"),
        Query.of(
            "scalar subquery", "SELECT id FROM facts WHERE id > (SELECT AVG(weight) FROM dims)"),
        Query.of(
            "union",
            "SELECT k, COUNT(*) FROM (SELECT k FROM facts UNION ALL SELECT k FROM dims UNION ALL SELECT k FROM facts_parquet) GROUP BY k"),
        Query.of("intersect", "SELECT k FROM facts INTERSECT SELECT k FROM dims"),
        Query.of("except", "SELECT k, bool FROM facts EXCEPT SELECT k, weight > 500 FROM dims"),
        Query.of(
            "cached table", "SELECT /*+ REPARTITION(5, k) */ id, k, s, dec38 FROM facts_cached"),
        Query.of("group cached", "SELECT k, SUM(id), MAX(s) FROM facts_cached GROUP BY k"),
        Query.of(
            "explode",
            "SELECT i, COUNT(*) FROM (SELECT EXPLODE(longs) AS i FROM nested) GROUP BY i"),
        Query.of(
            "group by struct",
            "SELECT struct, COUNT(*), COUNT(DISTINCT arrays) FROM nested GROUP BY struct"));
  }

  private static List<Query> adaptive() {
    return List.of(
        Query.of("coalesced partitions", "SELECT k, COUNT(*) FROM facts GROUP BY k")
            .with("spark.sql.shuffle.partitions", "40"),
        Query.of("all into one partition", "SELECT s, COUNT(*) FROM facts_parquet GROUP BY s")
            .with("spark.sql.shuffle.partitions", "30")
            .with(ADVISORY_BYTES, "64MB")
            .with(MIN_PARTITION, "1MB"),
        Query.of(
                "skew join",
                "SELECT a.id, b.id FROM facts a JOIN (SELECT * FROM facts_parquet WHERE id < 40) b ON a.skewed = b.skewed")
            .with("spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes", "2KB")
            .with("spark.sql.adaptive.skewJoin.skewedPartitionFactor", "1.2")
            .with(ADVISORY_BYTES, "8KB"),
        Query.of(
                "broadcast at run time",
                "SELECT f.id, d.name FROM facts f JOIN dims d ON f.k = d.k WHERE d.weight = 70")
            .with("spark.sql.adaptive.autoBroadcastJoinThreshold", "1MB"),
        Query.of(
                "local read of columns",
                "SELECT f.id, f.s, d.name FROM facts_parquet f JOIN (SELECT k, MAX(name) AS name FROM dims GROUP BY k) d ON f.k = d.k")
            .with("spark.sql.adaptive.autoBroadcastJoinThreshold", "1MB"),
        Query.of(
            "empty at run time",
            "SELECT f.id, d.name FROM facts f JOIN (SELECT * FROM dims WHERE name = STRING(weight)) d ON f.k = d.k"),
        Query.of("rebalance skewed", "SELECT /*+ REBALANCE(skewed) */ skewed, s FROM facts")
            .with(ADVISORY_BYTES, "4KB"));
  }
}
