package io.weft.tests.workload;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * The tables that {@link Queries} read, made from row numbers and hashes so that every Spark makes
 * the same ones.
 *
 * <ul>
 *   <li>{@code facts}: rows; a column of each simple type, nulls in most of them
 *   <li>{@code facts_parquet}: the same from Parquet files, as columnar batches
 *   <li>{@code facts_cached}: the same from Spark's columnar cache
 *   <li>{@code nested}: arrays, maps, structs, each in each other
 *   <li>{@code special}: collations, variants, intervals and a user-defined type
 *   <li>{@code dims}: one row for each {@code facts.k} but some; {@code nothing}: {@code facts}
 *       without a row
 * </ul>
 */
public final class Tables {
  /** Rows of {@code facts}. */
  public static final int ROWS = 3000;

  private static final String FACTS =
      """
      SELECT id,
        CAST(id % 97 AS INT) AS k,
        CAST(IF(id % 10 < 7, 0, id % 31) AS INT) AS skewed,
        IF(id % 11 = 0, NULL, CONCAT('value ', id % 53, REPEAT('x', CAST(id % 40 AS INT)))) AS s,
        IF(id % 7 = 0, NULL, id % 2 = 0) AS bool,
        IF(id % 13 = 0, NULL, CAST(id % 251 - 125 AS TINYINT)) AS tiny,
        IF(id % 17 = 0, NULL, CAST(HASH(id) % 32000 AS SMALLINT)) AS small,
        IF(id % 5 = 0, NULL, XXHASH64(id)) AS big,
        IF(id % 9 = 0, NULL, CAST(HASH(id) % 4096 / 8.0 AS DOUBLE)) AS d,
        IF(id % 8 = 0, NULL, CAST(HASH(id, 1) % 512 / 4.0 AS FLOAT)) AS f,
        CASE id % 6 WHEN 0 THEN DOUBLE('NaN') WHEN 1 THEN DOUBLE('-Infinity') WHEN 2 THEN -0.0D
          WHEN 3 THEN 4.9E-324D WHEN 4 THEN NULL ELSE 1.0D / id END AS weird,
        IF(id % 4 = 0, NULL, CAST(HASH(id, 2) / 100 AS DECIMAL(12, 2))) AS dec12,
        CAST(XXHASH64(id, 3) AS DECIMAL(38, 10)) * 1000003 AS dec38,
        IF(id % 3 = 0, NULL, UNHEX(SHA1(CAST(id AS STRING)))) AS bin,
        IF(id % 19 = 0, NULL, DATE_ADD(DATE'1969-12-01', CAST(id % 400 AS INT))) AS day,
        IF(id % 23 = 0, NULL, TIMESTAMP_MICROS(XXHASH64(id, 4) % 4000000000000000)) AS ts,
        IF(id % 29 = 0, NULL, CAST(TIMESTAMP_MICROS(id * 1234567890123) AS TIMESTAMP_NTZ)) AS ntz,
        NULL AS nothing,
        'constant' AS same
      FROM RANGE(0, <rows>, 1, 4)
      """
          .replace("<rows>", Integer.toString(ROWS));

  private static final String NESTED =
      """
      SELECT id,
        IF(id % 5 = 0, NULL, SEQUENCE(0, id % 7)) AS longs,
        TRANSFORM(SEQUENCE(0, id % 4), i -> IF(i = 1, NULL, REPEAT('ab', CAST(i + id % 9 AS INT)))) AS strings,
        IF(id % 6 = 0, MAP(), MAP(CONCAT('a', id % 3), id, CONCAT('b', id), NULL)) AS map,
        IF(id % 4 = 0, NULL, NAMED_STRUCT('x', id % 10, 'y', IF(id % 3 = 0, NULL, STRING(id)))) AS struct,
        ARRAY(ARRAY(id, NULL), NULL, ARRAY()) AS arrays,
        MAP(id % 5, ARRAY(NAMED_STRUCT('m', MAP('k', CAST(id AS DECIMAL(30, 3))), 'z', id % 2 = 0))) AS deep,
        NAMED_STRUCT('in', NAMED_STRUCT('a', ARRAY(BINARY(STRING(id))), 'b', DATE_ADD(DATE'2020-01-01', CAST(id AS INT)))) AS inner,
        CAST(id % 11 AS INT) AS k
      FROM RANGE(0, 1200, 1, 3)
      """;

  private static final String SPECIAL =
      """
      SELECT id, point,
        CAST(IF(id % 2 = 0, 'Key', 'kEY') || id % 9 AS STRING COLLATE UTF8_LCASE) AS lcase,
        CAST('Ä' || id % 5 AS STRING COLLATE UNICODE_CI) AS unicode,
        IF(id % 4 = 0, NULL, PARSE_JSON('{"a": ' || id || ', "b": ["x", null, 1.5]}')) AS variant,
        IF(id % 3 = 0, NULL, MAKE_YM_INTERVAL(CAST(id AS INT), CAST(id % 12 AS INT))) AS months,
        IF(id % 5 = 0, NULL, MAKE_DT_INTERVAL(CAST(id AS INT), 1, 2, 3.000004)) AS micros,
        MAKE_INTERVAL(1, CAST(id % 12 AS INT), 0, CAST(id AS INT), 1, 1, 1.5) AS calendar
      FROM points
      """;

  private static final String DIMS =
      "SELECT CAST(id AS INT) AS k, CONCAT('dim ', id) AS name, id * 10 AS weight FROM RANGE(0, 97, 1, 2) WHERE id % 8 <> 3";

  private Tables() {}

  /**
   * Writes the Parquet files once, with the session's current shuffle (writing them needs no
   * shuffle).
   *
   * @param folder where to write; created, must not hold files of another run
   */
  public static void writeParquet(SparkSession session, Path folder) {
    session.sql(FACTS).drop("nothing").write().parquet(folder.resolve("facts").toString());
  }

  /**
   * Registers all tables as views of the session, {@code facts_parquet} over the files of {@link
   * #writeParquet}.
   */
  public static void register(SparkSession session, Path parquetFolder) {
    session.sql(FACTS).createOrReplaceTempView("facts");
    session.sql(NESTED).createOrReplaceTempView("nested");
    session.sql(DIMS).createOrReplaceTempView("dims");
    session.sql("SELECT * FROM facts WHERE id < 0").createOrReplaceTempView("nothing");
    session.createDataFrame(points(), POINTS).createOrReplaceTempView("points");
    session.sql(SPECIAL).createOrReplaceTempView("special");
    // Otherwise Spark would run a job to find the columns of the files.
    session
        .read()
        .schema(session.table("facts").drop("nothing").schema())
        .parquet(parquetFolder.resolve("facts").toString())
        .createOrReplaceTempView("facts_parquet");
    // The extra column prevents Spark from answering queries on facts from the cache too.
    session.sql("CACHE LAZY TABLE facts_cached AS SELECT *, k + 1 AS next FROM facts");
  }

  private static final StructType POINTS =
      new StructType().add("id", DataTypes.LongType).add("point", new PointType());

  private static List<Row> points() {
    List<Row> rows = new ArrayList<>();
    for (long id = 0; id < 300; id++) {
      rows.add(RowFactory.create(id, id % 6 == 0 ? null : new Point(id / 8.0, -id, "point " + id)));
    }
    return rows;
  }
}
