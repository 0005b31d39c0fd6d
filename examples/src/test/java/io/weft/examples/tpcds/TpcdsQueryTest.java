package io.weft.examples.tpcds;

import static org.assertj.core.api.Assertions.assertThat;

import io.trino.tpcds.Table;
import io.weft.examples.jobs.OpenTables;
import io.weft.examples.jobs.QueryResult;
import io.weft.examples.jobs.ResultRows;
import io.weft.spark.WeftPlugin;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TpcdsQueryTest {
  private static final double SCALE = 0.01;
  private static final List<String> TABLES = List.of("store_sales", "date_dim", "item", "store");
  private static final List<String> QUERIES = List.of("3", "65", "98");

  @TempDir private Path folder;

  private SparkSession start(boolean weft) {
    SparkSession.Builder builder =
        SparkSession.builder()
            .master("local[2]")
            .config("spark.driver.host", "localhost")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "3")
            // Tables of this size would all be broadcast.
            .config("spark.sql.autoBroadcastJoinThreshold", "-1")
            .config("spark.sql.warehouse.dir", folder.resolve("warehouse").toString());
    return (weft ? builder.config("spark.plugins", WeftPlugin.class.getName()) : builder)
        .getOrCreate();
  }

  private Map<String, ResultRows> results(SparkSession session) {
    new OpenTables(folder.toString(), TABLES).run(session);
    Map<String, ResultRows> results = new LinkedHashMap<>();
    for (String name : QUERIES) {
      results.put(name, new QueryResult(new TpcdsQuery(name).text()).run(session));
    }
    return results;
  }

  @Test
  void sparkAcceptsEveryQueryAndWeftHasItsResults() throws Exception {
    SparkSession spark = start(false);
    Map<String, ResultRows> expected;
    Map<String, QueryResult.Allowed> allowed = new LinkedHashMap<>();
    try {
      everyQueryIsResolved(spark);
      for (String table : TABLES) {
        TpcdsTables.ALL.write(table, SCALE, folder.resolve(table).toString()).run(spark);
      }
      expected = results(spark);
      for (String name : QUERIES) {
        String text = new TpcdsQuery(name).text();
        allowed.put(name, new QueryResult.EveryAllowed(text).run(spark));
        assertThat(allowed.get(name).objection(expected.get(name))).as("query " + name).isEmpty();
      }
    } finally {
      spark.stop();
    }
    SparkSession weft = start(true);
    try {
      Map<String, ResultRows> actual = results(weft);
      assertThat(actual.get("3").size()).isPositive();
      assertThat(actual.get("65").size()).isPositive();
      actual.forEach(
          (name, rows) ->
              assertThat(allowed.get(name).objection(rows)).as("query " + name).isEmpty());
    } finally {
      weft.stop();
    }
  }

  private static void everyQueryIsResolved(SparkSession session) {
    for (String name : TpcdsTables.ALL.names()) {
      session
          .createDataFrame(new ArrayList<>(), WriteTable.schema(Table.getTable(name)))
          .createOrReplaceTempView(name);
    }
    assertThat(TpcdsQuery.all()).hasSize(103);
    for (TpcdsQuery query : TpcdsQuery.all()) {
      assertThat(session.sql(query.text()).columns()).as(query.name()).isNotEmpty();
    }
  }
}
