package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.spark.LocalSpark;
import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import org.apache.arrow.c.ArrowArray;
import org.apache.arrow.c.ArrowSchema;
import org.apache.arrow.c.Data;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.FixedSizeListVector;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.functions;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Batches as Arrow vectors, and as Arrow's C structures. */
class ArrowFeedTest {
  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    spark = LocalSpark.start(Map.of());
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  private static Dataset<Row> rows() {
    return FeedData.rows(spark.session(), 40, 2);
  }

  private static void onFirstBatch(Dataset<Row> rows, FeedFunction<Boolean> check) {
    assertThat(WeftFeed.shards(rows, 1).batchRows(20).train(check)).containsExactly(true);
  }

  private static long data(FieldVector vector) {
    return vector.getDataBufferAddress();
  }

  @Test
  void vectorsShareTheMemoryOfTheTensors() {
    onFirstBatch(
        rows(),
        task -> {
          FeedBatch batch = task.batches(0).next();
          VectorSchemaRoot root = batch.arrow();
          assertThat(batch.arrow()).isSameAs(root);
          assertThat(root.getRowCount()).isEqualTo(20);
          assertThat(data(root.getVector("id"))).isEqualTo(batch.tensor("id").address());
          FixedSizeListVector x = (FixedSizeListVector) root.getVector("x");
          assertThat(x.getListSize()).isEqualTo(6);
          assertThat(data(x.getChildrenFromFields().get(0))).isEqualTo(batch.tensor("x").address());
          assertThat(x.getField().getMetadata())
              .containsEntry("ARROW:extension:name", "arrow.fixed_shape_tensor")
              .containsEntry("ARROW:extension:metadata", "{\"shape\":[2,3]}")
              .containsEntry("weft.tensor", "{\"dtype\":\"float32\",\"shape\":[2,3]}");
          return true;
        });
  }

  /** A root that its user has cleared has no values any more, but still reports its rows. */
  @Test
  void closedOrClearedVectorsAreRecreated() {
    onFirstBatch(
        rows(),
        task -> {
          FeedBatch batch = task.batches(0).next();
          List<Long> ids = FeedData.ids(batch);
          VectorSchemaRoot closed = batch.arrow();
          closed.close();
          VectorSchemaRoot cleared = batch.arrow();
          assertThat(cleared).isNotSameAs(closed);
          check(cleared, ids);
          cleared.clear();
          check(batch.arrow(), ids);
          assertThat(data(batch.arrow().getVector("id"))).isEqualTo(batch.tensor("id").address());
          return true;
        });
  }

  @Test
  void valuesEqualThoseOfTheRows() {
    onFirstBatch(
        rows(),
        task -> {
          FeedBatch batch = task.batches(0).next();
          List<Long> ids = FeedData.ids(batch);
          check(batch.arrow(), ids);
          return true;
        });
  }

  private static void check(VectorSchemaRoot root, List<Long> ids) {
    BigIntVector id = (BigIntVector) root.getVector("id");
    FixedSizeListVector x = (FixedSizeListVector) root.getVector("x");
    Float4Vector values = (Float4Vector) x.getChildrenFromFields().get(0);
    VarCharVector text = (VarCharVector) root.getVector("text");
    for (int row = 0; row < ids.size(); row++) {
      long expected = ids.get(row);
      assertThat(id.get(row)).isEqualTo(expected);
      assertThat(x.isNull(row)).isFalse();
      for (int i = 0; i < FeedData.WIDTH; i++) {
        assertThat(values.get(FeedData.WIDTH * row + i)).isEqualTo(expected + i);
      }
      String said = text.isNull(row) ? null : text.getObject(row).toString();
      assertThat(said).isEqualTo(expected % 3 == 0 ? null : "row " + expected);
    }
  }

  /** Compares lists, maps, structs, decimals, dates and similar types with Spark's own rows. */
  @Test
  void otherTypesEqualThoseOfTheRows() {
    Dataset<Row> rows =
        spark
            .session()
            .range(0, 20, 1, 1)
            .selectExpr(
                "id",
                "id % 2 = 0 flag",
                "cast(id as decimal(30, 2)) large",
                "cast(id as decimal(9, 2)) small",
                "date_from_unix_date(cast(id as int)) day",
                "timestamp_micros(id) moment",
                "sequence(0, id) list",
                "map('a', id) entries",
                "named_struct('n', if(id = 3, null, id)) record");
    onFirstBatch(
        rows,
        task -> {
          VectorSchemaRoot root = task.batches(0).next().arrow();
          assertThat(root.getVector("flag").getObject(4)).isEqualTo(true);
          assertThat(((DecimalVector) root.getVector("large")).getObject(7))
              .isEqualTo(new BigDecimal("7.00"));
          assertThat(root.getVector("small").getObject(7)).isEqualTo(700L);
          assertThat(root.getVector("small").getField().getMetadata())
              .containsEntry("weft.decimal", "9,2");
          assertThat(root.getVector("day").getObject(9)).isEqualTo(9);
          assertThat(root.getVector("moment").getObject(9)).isEqualTo(9L);
          assertThat(((ListVector) root.getVector("list")).getObject(2))
              .asString()
              .isEqualTo("[0,1,2]");
          assertThat(root.getVector("entries").getObject(5))
              .asString()
              .isEqualTo("[{\"key\":\"a\",\"value\":5}]");
          assertThat(root.getVector("record").getObject(3)).asString().isIn("{}", "{\"n\":null}");
          assertThat(root.getVector("record").getObject(4)).asString().isEqualTo("{\"n\":4}");
          return true;
        });
  }

  /** A first dimension that varies makes a list instead of a tensor. */
  @Test
  void raggedTensorsAreLists() {
    Dataset<Row> rows =
        spark
            .session()
            .range(0, 20, 1, 1)
            .select(
                WeftTensors.column(
                    functions.expr("transform(sequence(1, 2 * (id + 1)), i -> cast(i as short))"),
                    "r",
                    DataType.INT16,
                    -1,
                    2));
    onFirstBatch(
        rows,
        task -> {
          FeedBatch batch = task.batches(0).next();
          ListVector list = (ListVector) batch.arrow().getVector("r");
          assertThat(list.getObject(1)).asString().isEqualTo("[1,2,3,4]");
          assertThat(list.getField().getMetadata())
              .containsEntry("weft.tensor", "{\"dtype\":\"int16\",\"shape\":[-1,2]}");
          assertThatThrownBy(() -> batch.tensor("r"))
              .hasMessageContaining("column r: its values have different shapes (int16[-1, 2])");
          return true;
        });
  }

  @Test
  void theCInterfaceHandsOverTheSameMemory() {
    onFirstBatch(
        rows(),
        task -> {
          FeedBatches batches = task.batches(0);
          FeedBatch batch = batches.next();
          List<Long> ids = FeedData.ids(batch);
          long address = batch.tensor("id").address();
          try (BufferAllocator allocator = new RootAllocator();
              ArrowArray array = ArrowArray.allocateNew(allocator);
              ArrowSchema schema = ArrowSchema.allocateNew(allocator)) {
            batch.exportTo(array.memoryAddress(), schema.memoryAddress());
            FeedBatch next = batches.next();
            try (VectorSchemaRoot root =
                Data.importVectorSchemaRoot(allocator, array, schema, null)) {
              assertThat(data(root.getVector("id"))).isEqualTo(address);
              check(root, ids);
              assertThat(FeedData.ids(batch)).as("kept by the import").isEqualTo(ids);
              assertThat(FeedData.ids(next)).isNotEqualTo(ids);
            }
            assertThatThrownBy(() -> batch.tensor("id")).hasMessageContaining("has ended");
          }
          return true;
        });
  }

  @Test
  void typesWithoutAnArrowFormAreNamed() {
    Dataset<Row> rows =
        spark.session().range(0, 20, 1, 1).selectExpr("make_interval(0, 1, 0, id) span", "id");
    onFirstBatch(
        rows,
        task -> {
          FeedBatch batch = task.batches(0).next();
          assertThat(batch.tensor("id").address()).isNotZero();
          assertThatThrownBy(batch::arrow)
              .hasMessage(
                  "column span: interval has no Arrow form in a feed; cast it or leave it out");
          return true;
        });
  }
}
