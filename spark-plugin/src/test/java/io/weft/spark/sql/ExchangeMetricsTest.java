package io.weft.spark.sql;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.shuffle.InPlaceMetrics;
import java.nio.file.Path;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import scala.jdk.javaapi.CollectionConverters;

/** The metrics of the exchange node. */
class ExchangeMetricsTest {
  private static final int ROWS = 10_000;

  @RegisterExtension static final SqlSpark SPARK = new SqlSpark();

  @TempDir static Path folder;

  @BeforeAll
  static void table() {
    String path = folder.resolve("stored").toString();
    SPARK.session().range(0, ROWS, 1, 2).write().parquet(path);
    SPARK.session().read().parquet(path).createOrReplaceTempView("stored");
    SPARK.session().range(0, ROWS, 1, 2).createOrReplaceTempView("made");
  }

  @ParameterizedTest
  @ValueSource(strings = {"stored", "made"})
  void countRowsBytesAndBatches(String table) {
    Map<String, SQLMetric> metrics = metrics("select /*+ repartition(3, id) */ id from " + table);
    assertThat(value(metrics, "numPartitions")).isEqualTo(3);
    assertThat(value(metrics, "shuffleRecordsWritten")).isEqualTo(ROWS);
    assertThat(value(metrics, "recordsRead")).isEqualTo(ROWS);
    assertThat(value(metrics, "shuffleWriteTime")).isPositive();
    // A row of one long: a word of null bits and a word for the value.
    assertThat(value(metrics, "dataSize")).isEqualTo(16L * ROWS);
    long written = value(metrics, "shuffleBytesWritten");
    assertThat(written).isGreaterThanOrEqualTo(8L * ROWS);
    assertThat(value(metrics, "localBytesRead")).isEqualTo(written);
    assertThat(value(metrics, "localBlocksFetched")).isEqualTo(2 * 3);
    assertThat(value(metrics, "remoteBlocksFetched")).isZero();
    assertThat(value(metrics, InPlaceMetrics.OWN_BYTES)).isEqualTo(written);
    assertThat(value(metrics, InPlaceMetrics.IN_PLACE_BYTES)).isEqualTo(written);
    assertThat(value(metrics, ExchangeMetrics.BATCHES_WRITTEN)).isGreaterThanOrEqualTo(2 * 3);
    assertThat(value(metrics, ExchangeMetrics.BATCHES_READ)).isBetween(3L, 6L);
    assertThat(metrics)
        .doesNotContainKeys(
            ExchangeMetrics.DEVICE_TABLES_WRITTEN, ExchangeMetrics.DEVICE_TABLES_READ);
  }

  private static Map<String, SQLMetric> metrics(String query) {
    Dataset<Row> rows =
        SPARK.with(
            Map.of("spark.weft.route", "columns", "spark.sql.adaptive.enabled", "false"),
            () -> {
              Dataset<Row> planned = SPARK.session().sql(query);
              planned.collectAsList();
              return planned;
            });
    return CollectionConverters.asJava(Plans.wefts(rows).get(0).metrics());
  }

  private static long value(Map<String, SQLMetric> metrics, String name) {
    return metrics.get(name).value();
  }
}
