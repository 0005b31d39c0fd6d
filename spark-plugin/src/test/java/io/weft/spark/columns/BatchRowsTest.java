package io.weft.spark.columns;

import static org.assertj.core.api.Assertions.assertThat;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;

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

  /** Types without an object of Spark's own. */
  @Provide
  Arbitrary<StructType> packable() {
    return TypeSet.schema(
        TypeSet.any().filter(type -> RowPacker.supports(List.of(ColumnLayout.of("column", type)))),
        5);
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

  @Property(tries = 150)
  void packableTypesBecomeSparksRow(
      @ForAll("packable") StructType schema,
      @ForAll @IntRange(max = 40) int rows,
      @ForAll @IntRange(max = 3) int nulls,
      @ForAll long seed)
      throws Exception {
    check(schema, new RandomRows(seed, nulls / 3.0).rows(schema, rows));
  }

  /** Long values come first, so that the padding of later ones would show their bytes. */
  @Property(tries = 50)
  void bytesOfEveryLengthArePaddedWithZeros(@ForAll long seed) throws Exception {
    StructType schema = StructType.fromDDL("a string, b binary, c array<string>, d decimal(38,0)");
    Random random = new Random(seed);
    List<InternalRow> rows = new ArrayList<>();
    for (int length = 150; length >= 0; length--) {
      byte[] value = new byte[length];
      random.nextBytes(value);
      UTF8String string = UTF8String.fromBytes(value);
      rows.add(
          new GenericInternalRow(
              new Object[] {
                string,
                value,
                new GenericArrayData(new Object[] {string, null, string}),
                Decimal.apply(new BigDecimal(new BigInteger(length * 4 / 5, random)), 38, 0)
              }));
    }
    check(schema, rows);
  }

  @Example
  void emptyAndNestedCollectionsBecomeSparks() throws Exception {
    StructType schema =
        StructType.fromDDL(
            "a array<decimal(38,2)>, b map<string, array<int>>, c array<struct<x: boolean>>,"
                + " d array<array<boolean>>");
    GenericArrayData none = new GenericArrayData(new Object[0]);
    ArrayBasedMapData noEntries = new ArrayBasedMapData(none, none);
    InternalRow empty = new GenericInternalRow(new Object[] {none, noEntries, none, none});
    GenericArrayData nulls = new GenericArrayData(new Object[] {null, null});
    InternalRow ofNulls = new GenericInternalRow(new Object[] {nulls, null, nulls, nulls});
    check(schema, List.of(empty, ofNulls, empty, ofNulls));
  }

  @Example
  void payWhereSparkWouldMakeObjects() {
    assertThat(BatchRows.speedsUp(StructType.fromDDL("a int, b array<float>"))).isTrue();
    assertThat(BatchRows.speedsUp(StructType.fromDDL("a int, b array<string>"))).isTrue();
    assertThat(BatchRows.speedsUp(StructType.fromDDL("a int, b struct<c: int>"))).isTrue();
    assertThat(BatchRows.speedsUp(StructType.fromDDL("a int, b map<int, string>"))).isTrue();
    assertThat(BatchRows.speedsUp(StructType.fromDDL("a decimal(19,0)"))).isTrue();
    assertThat(BatchRows.speedsUp(StructType.fromDDL("a decimal(18,0)"))).isFalse();
    assertThat(BatchRows.speedsUp(StructType.fromDDL("a int, b string"))).isFalse();
    assertThat(BatchRows.speedsUp(StructType.fromDDL("a variant, b array<float>"))).isTrue();
    assertThat(BatchRows.speedsUp(StructType.fromDDL("a variant, b array<string>"))).isFalse();
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
      // Spark's code leaves bytes of earlier rows where an interval is null.
      BatchRows fresh = new BatchRows(schema);
      List<UnsafeRow> ofChunks = new ArrayList<>();
      for (MemoryChunks.Chunk chunk : chunks.of(0)) {
        fresh
            .ofChunk(chunk.address(), chunk.length())
            .forEachRemaining(row -> ofChunks.add(((UnsafeRow) row).copy()));
      }
      assertThat(found).isEqualTo(expected).hasSameSizeAs(rows);
      assertThat(ofChunks).isEqualTo(expected);
    }
  }
}
