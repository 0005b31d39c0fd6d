package io.weft.spark.sql;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Batches of Parquet files with several row groups. Each has a dictionary of its own, with other
 * values for the same ids. Some columns change to plain values within a batch.
 */
class DictionaryScanTest {
  private static final int ROWS = 9_000;

  @RegisterExtension static final SqlSpark SPARK = new SqlSpark();

  @TempDir static Path folder;

  private static List<String> expected;

  @BeforeAll
  static void write() {
    SPARK.with(
        Map.of("spark.weft.enabled", "false", "spark.sql.parquet.outputTimestampType", "INT96"),
        () -> {
          SPARK
              .session()
              .range(0, ROWS, 1, 1)
              .selectExpr(
                  "id",
                  "if(id % 11 = 0, null, concat('group ', div(id, 1500), ', value ', id % 7)) s",
                  "if(id % 1500 < 1000, concat(div(id, 1500), 'x', id % 5), concat('plain ', id, 'y')) t",
                  "unhex(hex(div(id, 1500) * 100 + id % 9)) b",
                  "cast(div(id, 1500) * 100 + id % 9 as decimal(7,2)) d7",
                  "cast(div(id, 1500) * 100 + id % 9 as decimal(17,2)) d17",
                  "if(id % 5 = 0, null, cast(div(id, 1500) * -100 - id % 9 as decimal(27,2))) d27",
                  "cast(div(id, 1500) * 10 + id % 9 as int) i",
                  "cast(div(id, 1500) * 10 + id % 9 as double) x",
                  "date_add(date'1500-01-01', cast(div(id, 1500) * 10 + id % 9 as int)) dt",
                  "timestamp_seconds(div(id, 1500) * 1000000 + id % 9) ts",
                  "if(id % 13 = 0, null, array(concat('a', div(id, 1500), id % 3), null, 'z')) l",
                  "map(concat('k', div(id, 1500), id % 3), unhex(hex(div(id, 1500) * 7 + id % 4))) m",
                  "named_struct('p', if(id % 3 = 0, null, concat('p', div(id, 1500))), 'q', id % 4) st")
              .write()
              .option("parquet.block.size", 60_000)
              .option("parquet.page.size", 4_000)
              .option("parquet.page.row.count.limit", 333)
              .option("parquet.dictionary.page.size", 2_500)
              .parquet(folder.resolve("table").toString());
          expected = RowTexts.unordered(moved());
          return null;
        });
    assertThat(expected).hasSize(ROWS);
  }

  @ParameterizedTest
  @CsvSource({"false,100", "true,100", "false,4096", "true,700"})
  void rowsAreTheSame(String offHeap, String batchRows) {
    SPARK.with(
        Map.of(
            "spark.weft.route",
            "columns",
            "spark.sql.columnVector.offheap.enabled",
            offHeap,
            "spark.sql.shuffle.orderIndependentChecksum.enabled",
            "true",
            "spark.sql.parquet.columnarReaderBatchSize",
            batchRows),
        () -> {
          Dataset<Row> rows = moved();
          assertThat(RowTexts.unordered(rows)).isEqualTo(expected);
          assertThat(Plans.first(rows)).isInstanceOf(WeftShuffleExchangeExec.class);
          return null;
        });
  }

  private static Dataset<Row> moved() {
    return SPARK
        .session()
        .read()
        .parquet(folder.resolve("table").toString())
        .repartition(5, col("id"));
  }
}
