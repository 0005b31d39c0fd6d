package io.weft.spark.columns;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Rows made from batches are those of Spark's own conversion, byte for byte. */
class BatchRowsTest {
  @Provide
  Arbitrary<StructType> schemas() {
    return TypeSet.schema(TypeSet.any(), 5);
  }

  @Provide
  Arbitrary<StructType> numbers() {
    return TypeSet.schema(
        Arbitraries.of(
                "tinyint",
                "smallint",
                "int",
                "bigint",
                "float",
                "double",
                "date",
                "timestamp",
                "boolean")
            .map(type -> DataTypes.createArrayType(TypeSet.parse(type))),
        4);
  }

  @Property(tries = 150)
  void everyTypeBecomesSparksRow(
      @ForAll("schemas") StructType schema,
      @ForAll @IntRange(max = 40) int rows,
      @ForAll @IntRange(max = 2) int nulls,
      @ForAll long seed)
      throws Exception {
    check(schema, new RandomRows(seed, nulls / 2.0).rows(schema, rows));
  }

  @Property(tries = 150)
  void arraysOfNumbersBecomeSparksArrays(
      @ForAll("numbers") StructType schema,
      @ForAll @IntRange(max = 40) int rows,
      @ForAll @IntRange(max = 2) int nulls,
      @ForAll long seed)
      throws Exception {
    check(schema, new RandomRows(seed, nulls / 2.0).rows(schema, rows));
  }

  @Example
  void payWhereAColumnIsAnArrayOfNumbers() {
    assertThat(BatchRows.speedsUp(StructType.fromDDL("a int, b array<float>"))).isTrue();
    assertThat(BatchRows.speedsUp(StructType.fromDDL("a int, b array<timestamp>"))).isTrue();
    assertThat(BatchRows.speedsUp(StructType.fromDDL("a int, b array<string>"))).isFalse();
    assertThat(BatchRows.speedsUp(StructType.fromDDL("a int, b array<boolean>"))).isFalse();
    assertThat(BatchRows.speedsUp(StructType.fromDDL("a int, b string"))).isFalse();
    assertThat(BatchRows.speedsUp(new StructType())).isFalse();
  }

  private static void check(StructType schema, List<InternalRow> rows) throws Exception {
    UnsafeProjection sparks = UnsafeProjection.create(schema);
    BatchRows ours = new BatchRows(schema);
    try (MemoryChunks chunks = new MemoryChunks();
        BatchScatter scatter = new BatchScatter(schema, 1, chunks, 16, 1 << 16)) {
      for (InternalRow row : rows) {
        scatter.append(row, 0);
      }
      scatter.finish();
      List<UnsafeRow> expected = new ArrayList<>();
      List<UnsafeRow> found = new ArrayList<>();
      try (BatchReader reader = new BatchReader(schema, chunks.read(chunks.of(0)), 8)) {
        while (reader.hasNext()) {
          ColumnarBatch batch = reader.next();
          batch.rowIterator().forEachRemaining(row -> expected.add(sparks.apply(row).copy()));
          ours.of(batch).forEachRemaining(row -> found.add(((UnsafeRow) row).copy()));
        }
      }
      assertThat(found).isEqualTo(expected).hasSameSizeAs(rows);
    }
  }
}
