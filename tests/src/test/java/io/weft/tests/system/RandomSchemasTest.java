package io.weft.tests.system;

import io.weft.tests.support.RandomTable;
import io.weft.tests.support.Rows;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.util.Arrays;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;
import net.jqwik.api.Tag;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.lifecycle.AfterContainer;
import net.jqwik.api.lifecycle.BeforeContainer;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;

/**
 * Rows of random schemas arrive unchanged, each once, for every partitioning, route and source. The
 * oracle is the table itself, and Spark's own shuffle for the partition of a row.
 */
class RandomSchemasTest {
  /** The input format: rows, or Parquet's column batches. */
  enum Source {
    ROWS,
    COLUMNS
  }

  /** How rows are assigned to partitions. */
  enum Partitioning {
    HASH,
    ROUND_ROBIN,
    RANGE,
    SINGLE
  }

  private static final Workspace WORKSPACE = new Workspace();
  private static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .queries(List.of())
          .set("spark.weft.memory.segmentSize", "1m")
          .set("spark.weft.batch.rows", "64");

  @BeforeContainer
  static void start() {
    WORKSPACE.open("RandomSchemasTest");
    CLUSTER.start();
  }

  @AfterContainer
  static void stop() {
    CLUSTER.stop();
    WORKSPACE.close();
  }

  @Property(tries = 30, seed = "20261121", shrinking = ShrinkingMode.BOUNDED)
  void everyRowArrivesOnce(
      @ForAll long seed,
      @ForAll @IntRange(min = 1, max = 12) int columns,
      @ForAll @IntRange(min = 0, max = 400) int rows,
      @ForAll @IntRange(min = 1, max = 17) int partitions,
      @ForAll Source source,
      @ForAll Partitioning partitioning,
      @ForAll boolean byRows,
      @ForAll boolean adaptive) {
    check(new RandomTable(seed, columns, rows), partitions, source, partitioning, byRows, adaptive);
  }

  @Tag("slow")
  @Property(tries = 1000, shrinking = ShrinkingMode.BOUNDED)
  void everyRowArrivesOnceForLong(
      @ForAll long seed,
      @ForAll @IntRange(min = 1, max = 30) int columns,
      @ForAll @IntRange(min = 0, max = 3000) int rows,
      @ForAll @IntRange(min = 1, max = 70) int partitions,
      @ForAll Source source,
      @ForAll Partitioning partitioning,
      @ForAll boolean byRows,
      @ForAll boolean adaptive) {
    check(new RandomTable(seed, columns, rows), partitions, source, partitioning, byRows, adaptive);
  }

  private static void check(
      RandomTable table,
      int partitions,
      Source source,
      Partitioning partitioning,
      boolean byRows,
      boolean adaptive) {
    SparkSession session = CLUSTER.session();
    Queries.configure(session, adaptive);
    session.conf().set("spark.weft.route", byRows ? "rows" : "columns");
    Dataset<Row> data = read(table, source);
    List<String> keys = keys(table);
    Dataset<Row> moved = moved(data, partitions, partitioning, keys);
    Rows.assertSame(table.schema().sql(), sorted(data), sorted(moved));
    if (partitioning == Partitioning.HASH) {
      List<String> placed = placed(moved);
      session.conf().set("spark.weft.enabled", "false");
      try {
        Rows.assertSame("partitions of " + table.schema().sql(), placed(moved), placed);
      } finally {
        session.conf().unset("spark.weft.enabled");
      }
    }
  }

  /** Every row after its partition number, by a new plan. */
  private static List<String> placed(Dataset<Row> moved) {
    return sorted(moved.select(functions.spark_partition_id(), functions.col("*")));
  }

  private static Dataset<Row> moved(
      Dataset<Row> data, int partitions, Partitioning partitioning, List<String> keys) {
    Column[] columns = keys.stream().map(functions::expr).toArray(Column[]::new);
    return switch (partitioning) {
      case HASH -> data.repartition(partitions, columns);
      case ROUND_ROBIN -> data.repartition(partitions);
      case RANGE -> data.repartitionByRange(partitions, columns);
      case SINGLE -> data.repartition(1);
    };
  }

  private static Dataset<Row> read(RandomTable table, Source source) {
    SparkSession session = CLUSTER.session();
    Dataset<Row> rows = session.createDataFrame(table.rows(), table.schema());
    if (source == Source.ROWS) {
      return rows;
    }
    String file = WORKSPACE.folder().resolve("random.parquet").toString();
    rows.write().mode(SaveMode.Overwrite).parquet(file);
    session.catalog().refreshByPath(file);
    return session.read().schema(table.schema()).parquet(file);
  }

  /** The partitioning columns: the first two without a map, which Spark does not hash or sort. */
  private static List<String> keys(RandomTable table) {
    List<String> keys =
        Arrays.stream(table.schema().fields())
            .filter(field -> !field.dataType().existsRecursively(type -> type instanceof MapType))
            .limit(2)
            .map(StructField::name)
            .toList();
    return keys.isEmpty() ? List.of("ISNULL(c0)") : keys;
  }

  private static List<String> sorted(Dataset<Row> data) {
    return RowText.collect(data).stream().sorted().toList();
  }
}
