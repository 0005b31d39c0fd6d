package io.weft.spark.gpu;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.catalog.BlockKey;
import io.weft.deviceblocks.DeviceBlock;
import io.weft.deviceblocks.DeviceFetchException;
import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.sql.WeftGpu;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Blocks of a GPU that are read through the host, as an executor without a GPU reads them. */
class HostReadsTest {
  private static final int PARTITIONS = 3;
  private static final String OWNER = "driver";

  private static LocalSpark spark;
  private static StructType schema;
  private static Dataset<Row> kept;

  @BeforeAll
  static void start() {
    spark =
        DoubleGpus.start(
            Map.of(
                "spark.weft.route", "auto",
                "spark.sql.shuffle.orderIndependentChecksum.enabled", "false",
                "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "false"));
    Dataset<Row> rows =
        spark
            .session()
            .range(0, 120_000, 1, 2)
            .selectExpr("id", "if(id % 7 = 0, null, concat('text ', id)) s", "id % 2 = 0 b");
    schema = rows.schema();
    kept = WeftGpu.onDevice(rows).repartition(PARTITIONS, col("id"));
    assertThat(kept.collectAsList()).hasSize(120_000);
  }

  @AfterAll
  static void nothingIsLeftBehind() {
    if (spark != null) {
      kept = null;
      spark.close();
      DoubleGpus.assertClean();
    }
  }

  private static List<DeviceBlock> blocks() {
    List<DeviceBlock> blocks = new ArrayList<>();
    for (BlockKey key : ExecutorGpu.current().exchange().catalog().keys()) {
      for (int partition = 0; partition < PARTITIONS; partition++) {
        blocks.add(new DeviceBlock(key, partition, 1));
      }
    }
    return blocks;
  }

  private static List<String> rows(List<TableFetch> fetches) throws DeviceFetchException {
    List<String> rows = new ArrayList<>();
    for (TableFetch fetch : fetches) {
      while (fetch.hasNext()) {
        try (FetchedTable table = fetch.next()) {
          ColumnarBatch batch = table.batch(schema);
          batch
              .rowIterator()
              .forEachRemaining(
                  row ->
                      rows.add(
                          row.getLong(0)
                              + (row.isNullAt(1) ? " null " : " " + row.getUTF8String(1) + " ")
                              + row.getBoolean(2)));
        }
      }
      fetch.close();
    }
    return rows;
  }

  @Test
  void rowsAreThoseOnTheDevice() throws Exception {
    List<DeviceBlock> blocks = blocks();
    assertThat(blocks).isNotEmpty();
    DeviceExchange device = ExecutorGpu.current().exchange();
    List<String> inPlace = rows(TableFetch.of(device, true, OWNER, blocks, () -> {}));
    List<String> throughHost = rows(TableFetch.of(null, false, OWNER, blocks, () -> {}));
    assertThat(inPlace).hasSize(120_000);
    assertThat(throughHost).isEqualTo(inPlace);
    assertThat(DoubleGpus.violations()).isEmpty();
  }

  @Test
  void theOwnerSaysWhatItHas() throws Exception {
    BlockKey there = blocks().get(0).key();
    BlockKey gone = new BlockKey(there.shuffleId(), there.mapId() + 1_000_000);
    assertThat(ExecutorGpu.current().hostReads().held(OWNER, List.of(gone, there)))
        .isEqualTo(Set.of(there));
    DeviceBlock missing = new DeviceBlock(gone, 1, 1);
    assertThatThrownBy(() -> rows(TableFetch.of(null, false, OWNER, List.of(missing), () -> {})))
        .isInstanceOfSatisfying(
            DeviceFetchException.class, e -> assertThat(e.block()).isEqualTo(missing))
        .hasMessageContaining("is not on the GPU of executor driver");
  }
}
