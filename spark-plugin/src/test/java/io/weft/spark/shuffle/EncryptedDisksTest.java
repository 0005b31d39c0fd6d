package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.spark.LocalSpark;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Shuffles of many partitions with encrypted disks, whose open chunks exceed the memory. */
class EncryptedDisksTest {
  private static final int MEGABYTE = 1 << 20;

  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    spark =
        LocalSpark.start(
            Map.of(
                "spark.io.encryption.enabled", "true",
                "spark.weft.memory.size", Integer.toString(MEGABYTE),
                "spark.weft.memory.segmentSize", Integer.toString(MEGABYTE),
                "spark.weft.spill.privateMemory", Integer.toString(4 * MEGABYTE)));
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  @ParameterizedTest
  @CsvSource({"rows, 7", "rows, 900", "columns, 7", "columns, 300"})
  void rowsAreThoseOfSparksShuffle(String route, int partitions) {
    List<Row> expected = spark.withSortShuffle(session -> query(session, partitions));
    long spilled = LocalSpark.count(ExchangeCounter.BYTES_SPILLED);
    spark.session().conf().set("spark.weft.route", route);
    assertThat(query(spark.session(), partitions)).isEqualTo(expected);
    assertThat(LocalSpark.count(ExchangeCounter.BYTES_SPILLED)).isGreaterThan(spilled);
    assertThat(LocalSpark.statistics().arena().privateMemory().reservedBytes())
        .isBetween(1L, 4L * MEGABYTE);
  }

  private static List<Row> query(SparkSession session, int partitions) {
    String moved =
        "SELECT /*+ REPARTITION(%d, k) */ id, k, LENGTH(s) AS n, XXHASH64(s) AS h FROM (SELECT id,"
            + " id %% 5000 AS k, REPEAT(id, 40) AS s FROM RANGE(0, 40000, 1, 3))";
    return session
        .sql(
            "SELECT COUNT(*), SUM(id), SUM(n), BIT_XOR(h) FROM (%s)"
                .formatted(moved.formatted(partitions)))
        .collectAsList();
  }
}
