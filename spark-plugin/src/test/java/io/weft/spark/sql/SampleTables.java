package io.weft.spark.sql;

import java.nio.file.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** Tables for queries, in Parquet and in memory, with all types, nulls, skew and empty tables. */
final class SampleTables {
  private static final int ROWS = 3000;

  /** Spark 4.0 does not write the null type to Parquet. */
  private static final String NULLS =
      org.apache.spark.package$.MODULE$.SPARK_VERSION().startsWith("4.0.")
          ? "cast(null as int)"
          : "null";

  private SampleTables() {}

  /** Creates the views {@code facts, dims, skewed, nothing, kept, made}. */
  static void create(SparkSession spark, Path folder) {
    parquet(facts(spark).repartition(3), folder, "facts");
    parquet(
        spark.range(200).selectExpr("cast(id as int) k", "concat('name ', id) name", "id * 3 v"),
        folder,
        "dims");
    parquet(
        spark
            .range(ROWS)
            .selectExpr("cast(if(id % 5 < 4, 1, id % 50) as int) k", "concat('s', id) s", "id v"),
        folder,
        "skewed");
    parquet(facts(spark).where("id < 0"), folder, "nothing");
    spark.table("facts").select("id", "k", "x").cache().createOrReplaceTempView("kept");
    facts(spark).createOrReplaceTempView("made");
  }

  private static void parquet(Dataset<Row> rows, Path folder, String name) {
    String path = folder.resolve(name).toString();
    rows.write().parquet(path);
    rows.sparkSession().read().parquet(path).createOrReplaceTempView(name);
  }

  private static Dataset<Row> facts(SparkSession spark) {
    return spark
        .range(0, ROWS, 1, 3)
        .selectExpr(
            "id",
            "cast(if(id % 13 = 0, null, id * 7919 % 211) as int) k",
            "cast(id % 7 as tinyint) g",
            "cast(id % 3000 as smallint) sh",
            "if(id % 11 = 0, null, repeat(concat('x', id % 97), cast(id % 5 as int))) s",
            "cast(id * 1.25 as decimal(12,2)) d",
            "cast(id as decimal(30,6)) * -1000003 big",
            "cast(if(id % 17 = 0, null, id / 3) as float) f",
            "id * 0.5 x",
            "id % 3 = 0 b",
            "date_add(date'2020-01-01', cast(id % 1000 as int)) dt",
            "timestamp_micros(1600000000000000 + id * 12345) ts",
            "timestamp_ntz'2021-05-05 05:05:05' + make_interval(0, 0, 0, 0, 0, 0, id) ntz",
            "unhex(hex(id)) bin",
            "if(id % 19 = 0, null, array(id, null, id + 1)) arr",
            "map(concat('m', id % 4), id, 'z', null) m",
            "named_struct('a', id % 5, 'b', if(id % 2 = 0, null, 'odd')) st",
            "array(named_struct('p', id, 'q', array(id % 3))) nested",
            "make_dt_interval(0, 0, 0, id) span",
            "make_ym_interval(0, cast(id % 50 as int)) months",
            "cast(null as string) nothing_string",
            NULLS + " nothing_at_all",
            "'same' constant");
  }
}
