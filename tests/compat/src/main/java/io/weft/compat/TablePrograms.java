package io.weft.compat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** Table formats with shuffles of their own: Delta and Iceberg. */
final class TablePrograms {
  private static final String ROWS =
      "SELECT id, REPEAT(STRING(id), 3) AS s, CAST(id % 7 AS INT) AS p FROM RANGE(0, 60000, 1, 6)";
  private static final String CHANGES =
      "SELECT 2 * id AS id, 'changed' AS s, CAST(2 * id % 7 AS INT) AS p"
          + " FROM RANGE(28000, 32000, 1, 4)";

  private TablePrograms() {}

  static List<Program> all() {
    Map<String, String> delta =
        Map.of(
            "spark.sql.extensions",
            "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog",
            "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions",
            "2");
    Map<String, String> iceberg =
        Map.of(
            "spark.sql.extensions",
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.ice",
            "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type",
            "hadoop");
    return List.of(
        Program.of("Delta, optimized write", delta, TablePrograms::optimizedWrite),
        Program.of("Delta, MERGE, DELETE, OPTIMIZE and ZORDER", delta, TablePrograms::delta),
        Program.of(
            "Iceberg, distribution modes, MERGE and rewrite", iceberg, TablePrograms::iceberg));
  }

  private static List<String> optimizedWrite(SparkSession session, Path folder) {
    session.conf().set("spark.databricks.delta.optimizeWrite.enabled", "true");
    String table = folder.resolve("table").toString();
    session.sql(ROWS).write().format("delta").partitionBy("p").save(table);
    session.sql(CHANGES).write().format("delta").mode("append").save(table);
    return digest(session.read().format("delta").load(table));
  }

  private static List<String> delta(SparkSession session, Path folder) {
    String path = folder.resolve("table").toString();
    String table = "delta.`" + path + "`";
    session.sql(ROWS).write().format("delta").partitionBy("p").save(path);
    merge(session, table);
    session.sql("DELETE FROM " + table + " WHERE id % 11 = 3");
    session.sql("OPTIMIZE " + table);
    List<String> result = new ArrayList<>(digest(session.table(table)));
    session.sql("OPTIMIZE " + table + " ZORDER BY (id, s)");
    result.addAll(digest(session.table(table)));
    return result;
  }

  private static List<String> iceberg(SparkSession session, Path folder) {
    session.conf().set("spark.sql.catalog.ice.warehouse", folder.resolve("ice").toString());
    session.sql(
        "CREATE TABLE ice.db.t (id BIGINT, s STRING, p INT) USING iceberg PARTITIONED BY (p)");
    for (String mode : List.of("none", "hash", "range")) {
      session.sql(
          "ALTER TABLE ice.db.t SET TBLPROPERTIES ('write.distribution-mode' = '" + mode + "')");
      session.sql(
          "INSERT INTO ice.db.t "
              + ROWS.replace("SELECT id", "SELECT id + " + mode.length() + " AS id"));
    }
    List<String> result = new ArrayList<>(digest(session.table("ice.db.t")));
    merge(session, "ice.db.t");
    result.addAll(digest(session.table("ice.db.t")));
    for (String order : List.of("id", "zorder(id, s)")) {
      session.sql(
          "CALL ice.system.rewrite_data_files(table => 'db.t', strategy => 'sort', sort_order => '"
              + order
              + "', options => map('rewrite-all', 'true'))");
      result.addAll(digest(session.table("ice.db.t")));
    }
    return result;
  }

  private static void merge(SparkSession session, String table) {
    session.sql(
        "MERGE INTO "
            + table
            + " AS t USING ("
            + CHANGES
            + ") AS u ON t.id = u.id AND t.p = u.p"
            + " WHEN MATCHED THEN UPDATE SET s = u.s WHEN NOT MATCHED THEN INSERT *");
  }

  /** Counts and sums of hashes for each partition, which two different tables hardly share. */
  private static List<String> digest(Dataset<Row> table) {
    table.createOrReplaceTempView("digested");
    return Program.sorted(
        table
            .sparkSession()
            .sql(
                "SELECT p, COUNT(*) AS n, SUM(id) AS ids,"
                    + " SUM(CAST(XXHASH64(id, s, p) AS DECIMAL(38, 0))) AS hashes"
                    + " FROM digested GROUP BY p"));
  }
}
