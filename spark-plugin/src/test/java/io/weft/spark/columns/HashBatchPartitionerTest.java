package io.weft.spark.columns;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.columns.ColumnLayout.StorageForm;
import io.weft.spark.columns.HashBatchPartitioner.PartitionModulo;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.Stream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Partition ids equal Spark's for every key type. */
class HashBatchPartitionerTest {
  /** Excludes types that Spark does not hash, or hashes only with a legacy setting. */
  private static boolean isKey(DataType type) {
    StorageForm form = ColumnLayout.of("", type).form();
    return form != StorageForm.VARIANT && form != StorageForm.OPAQUE;
  }

  static List<DataType> keyTypes() {
    return TypeSet.leaves().stream().filter(HashBatchPartitionerTest::isKey).toList();
  }

  @Provide
  Arbitrary<DataType> keys() {
    return Arbitraries.of(keyTypes());
  }

  @Property(tries = 60)
  void agreesWithSpark(
      @ForAll("keyLists") List<DataType> types,
      @ForAll BatchKind kind,
      @ForAll @IntRange(min = 1, max = 300) int partitions,
      @ForAll long seed)
      throws Exception {
    StructType schema = RandomRows.schema(types);
    List<InternalRow> rows =
        new RandomRows(seed, new Random(seed).nextInt(3) / 2.0).rows(schema, 100);
    try (ColumnarBatch batch = kind.orIfUnfit(schema).batch(schema, rows)) {
      assertSame(schema, batch, rows, partitions);
    }
  }

  @Provide
  Arbitrary<List<DataType>> keyLists() {
    return keys().list().ofMinSize(1).ofMaxSize(4);
  }

  static Stream<DataType> simpleTypes() {
    return keyTypes().stream().filter(type -> ColumnHash.of(type) != null);
  }

  @ParameterizedTest
  @MethodSource("simpleTypes")
  void agreesWithSparkOnConstants(DataType type) throws Exception {
    StructType schema = RandomRows.schema(List.of(type));
    for (InternalRow row : new RandomRows(7, 0.2).rows(schema, 20)) {
      try (ColumnarBatch batch = SourceVectors.constant(schema, row, 10)) {
        assertSame(schema, batch, Collections.nCopies(10, row), 13);
      }
    }
  }

  static Stream<DataType> dictionaryTypes() {
    return simpleTypes().filter(type -> SourceVectors.hasDictionary(ColumnLayout.of("", type)));
  }

  @ParameterizedTest
  @MethodSource("dictionaryTypes")
  void agreesWithSparkOnDictionaries(DataType type) throws Exception {
    StructType schema = RandomRows.schema(List.of(type));
    List<InternalRow> rows = new RandomRows(8, 0.2).rows(schema, 60);
    List<Object> values = new ArrayList<>();
    rows.stream().filter(row -> !row.isNullAt(0)).forEach(row -> values.add(row.get(0, type)));
    try (ColumnarBatch batch = SourceVectors.dictionary(schema, rows, true, values)) {
      assertSame(schema, batch, rows, 17);
    }
  }

  @Test
  void agreesWithSparkOnArrow() throws Exception {
    StructType schema =
        RandomRows.schema(
            Stream.of(
                    "boolean",
                    "tinyint",
                    "int",
                    "bigint",
                    "float",
                    "double",
                    "date",
                    "timestamp",
                    "decimal(9,2)",
                    "decimal(18,3)",
                    "decimal(38,10)",
                    "string",
                    "binary")
                .map(TypeSet::parse)
                .toList());
    List<InternalRow> rows = new RandomRows(9, 0.2).rows(schema, 500);
    try (ColumnarBatch batch = SourceVectors.arrow(schema, rows, false)) {
      assertSame(schema, batch, rows, 200);
    }
  }

  @Test
  void hashesSimpleColumnsByColumn() {
    for (DataType type : keyTypes()) {
      boolean byColumn =
          partitioner(RandomRows.schema(List.of(type)), 5) instanceof HashBatchPartitioner;
      boolean expected =
          !(type instanceof VectorLikeUdt)
              && !type.equals(DataTypes.CalendarIntervalType)
              && !type.sql().contains("COLLATE");
      assertThat(byColumn).as(type.sql()).isEqualTo(expected);
    }
  }

  @Test
  void hashesSimpleColumnsInPackedRows() {
    for (DataType type : keyTypes()) {
      List<Attribute> output = attributes(RandomRows.schema(List.of(type)));
      Optional<HashRowPartitioner> hash =
          HashRowPartitioner.of(partitioning(output, 5), seq(output));
      boolean expected =
          ColumnHash.of(type) != null && ColumnLayout.of("", type).form() != StorageForm.DECIMAL128;
      assertThat(hash.isPresent()).as(type.sql()).isEqualTo(expected);
    }
  }

  @Test
  void hashesLongTextsInPackedRows() {
    StructType schema = RandomRows.schema(List.of(DataTypes.LongType, DataTypes.StringType));
    List<InternalRow> rows = new ArrayList<>();
    for (int length : new int[] {0, 1, 3, 4, 8, 9, 100_001, 3_000_000}) {
      rows.add(
          new GenericInternalRow(
              new Object[] {(long) -length, UTF8String.fromString("é".repeat(length))}));
    }
    List<Attribute> output = attributes(schema);
    HashPartitioning partitioning = partitioning(output, 200);
    HashRowPartitioner hash = HashRowPartitioner.of(partitioning, seq(output)).orElseThrow();
    assertThat(ofPackedRows(hash, schema, rows)).isEqualTo(expected(partitioning, output, rows));
  }

  @Test
  void evaluatesExpressions() {
    StructType schema = RandomRows.schema(List.of(DataTypes.IntegerType));
    List<Attribute> output = attributes(schema);
    HashPartitioning partitioning =
        new HashPartitioning(
            seq(
                List.<Expression>of(
                    new Add((Expression) output.get(0), Literal.create(3, DataTypes.IntegerType)))),
            11);
    assertThat(HashRowPartitioner.of(partitioning, seq(output))).isEmpty();
    BatchPartitioner partitioner = HashBatchPartitioner.create(partitioning, seq(output));
    List<InternalRow> rows = new RandomRows(1, 0.1).rows(schema, 100);
    try (ColumnarBatch batch = BatchKind.ON_HEAP.batch(schema, rows)) {
      int[] ids = new int[100];
      partitioner.partitionIds(batch, ids);
      assertThat(ids).isEqualTo(expected(partitioning, output, rows));
    }
  }

  /** Such as types of a future Spark. */
  @Test
  void rowsWithKeysOfUnknownTypesAreLeftToSpark() {
    DataType unknown = ObjectType.apply(Object.class);
    List<Attribute> output = attributes(new StructType().add("key", unknown));
    assertThat(HashRowPartitioner.of(partitioning(output, 3), seq(output))).isEmpty();
  }

  @Test
  void findsKeysAtAnyPosition() {
    StructType schema =
        RandomRows.schema(List.of(DataTypes.StringType, DataTypes.LongType, DataTypes.DateType));
    List<Attribute> output = attributes(schema);
    HashPartitioning partitioning =
        new HashPartitioning(
            seq(List.of((Expression) output.get(2), (Expression) output.get(0))), 11);
    List<InternalRow> rows = new RandomRows(1, 0.1).rows(schema, 100);
    try (ColumnarBatch batch = BatchKind.ON_HEAP.batch(schema, rows)) {
      int[] ids = new int[120];
      HashBatchPartitioner.create(partitioning, seq(output)).partitionIds(batch, ids);
      int[] expected = expected(partitioning, output, rows);
      assertThat(Arrays.copyOf(ids, 100)).isEqualTo(expected);
      HashRowPartitioner hash = HashRowPartitioner.of(partitioning, seq(output)).orElseThrow();
      assertThat(ofPackedRows(hash, schema, rows)).isEqualTo(expected);
    }
  }

  /** Scans pad large decimals. The hash uses the shortest form. */
  @Test
  void hashesLargeDecimalsInTheirShortestForm() {
    DecimalType type = DataTypes.createDecimalType(30, 2);
    StructType schema = RandomRows.schema(List.of(type));
    List<Object> values = new ArrayList<>();
    for (String value : new String[] {"0", "1", "-1", "127", "-128", "128", "123456789012345"}) {
      values.add(Decimal.apply(new java.math.BigDecimal(value).setScale(2), 30, 2));
    }
    List<InternalRow> rows = new ArrayList<>();
    values.forEach(value -> rows.add(new GenericInternalRow(new Object[] {value})));
    try (ColumnarBatch batch = SourceVectors.dictionary(schema, rows, true, values)) {
      assertSame(schema, batch, rows, 1000);
    }
  }

  @Property
  void remainderIsThatOfFloorMod(
      @ForAll @IntRange(min = 1) int divisor, @ForAll @Size(max = 20) List<Integer> hashes) {
    int[] ids = hashes.stream().mapToInt(Integer::intValue).toArray();
    new PartitionModulo(divisor).apply(ids, ids.length);
    assertThat(ids)
        .isEqualTo(hashes.stream().mapToInt(hash -> Math.floorMod(hash, divisor)).toArray());
  }

  private static void assertSame(
      StructType schema, ColumnarBatch batch, List<InternalRow> rows, int partitions) {
    int[] ids = new int[rows.size()];
    List<Attribute> output = attributes(schema);
    HashPartitioning partitioning = partitioning(output, partitions);
    HashBatchPartitioner.create(partitioning, seq(output)).partitionIds(batch, ids);
    int[] expected = expected(partitioning, output, rows);
    assertThat(ids).isEqualTo(expected);
    HashRowPartitioner.of(partitioning, seq(output))
        .ifPresent(hash -> assertThat(ofPackedRows(hash, schema, rows)).isEqualTo(expected));
  }

  /** Every second row is outside the heap, as rows are that another shuffle has brought. */
  private static int[] ofPackedRows(
      HashRowPartitioner hash, StructType schema, List<InternalRow> rows) {
    UnsafeProjection projection = UnsafeProjection.create(schema);
    int[] ids = new int[rows.size()];
    for (int i = 0; i < ids.length; i++) {
      UnsafeRow row = projection.apply(rows.get(i));
      ids[i] = i % 2 == 0 ? hash.partition(row) : ofRowOutsideTheHeap(hash, row);
    }
    return ids;
  }

  private static int ofRowOutsideTheHeap(HashRowPartitioner hash, UnsafeRow row) {
    int bytes = row.getSizeInBytes();
    long address = Platform.allocateMemory(bytes);
    try {
      Platform.copyMemory(row.getBaseObject(), row.getBaseOffset(), null, address, bytes);
      UnsafeRow copy = new UnsafeRow(row.numFields());
      copy.pointTo(null, address, bytes);
      return hash.partition(copy);
    } finally {
      Platform.freeMemory(address);
    }
  }

  private static BatchPartitioner partitioner(StructType schema, int partitions) {
    List<Attribute> output = attributes(schema);
    return HashBatchPartitioner.create(partitioning(output, partitions), seq(output));
  }

  private static HashPartitioning partitioning(List<Attribute> output, int partitions) {
    List<Expression> keys = new ArrayList<>();
    output.forEach(column -> keys.add((Expression) column));
    return new HashPartitioning(seq(keys), partitions);
  }

  private static int[] expected(
      HashPartitioning partitioning, List<Attribute> output, List<InternalRow> rows) {
    UnsafeProjection projection =
        UnsafeProjection.create(seq(List.of(partitioning.partitionIdExpression())), seq(output));
    return rows.stream().mapToInt(row -> projection.apply(row).getInt(0)).toArray();
  }

  private static List<Attribute> attributes(StructType schema) {
    List<Attribute> attributes = new ArrayList<>();
    for (StructField field : schema.fields()) {
      attributes.add(
          new AttributeReference(
              field.name(),
              field.dataType(),
              true,
              Metadata.empty(),
              NamedExpression.newExprId(),
              seq(List.<String>of())));
    }
    return attributes;
  }

  private static <T> Seq<T> seq(List<T> list) {
    return CollectionConverters.asScala(list).toSeq();
  }
}
