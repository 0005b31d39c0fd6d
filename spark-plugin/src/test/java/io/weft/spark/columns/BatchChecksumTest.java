package io.weft.spark.columns;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Assume;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;

/** The checksum of batches depends on the rows and their partitions, and on nothing else. */
class BatchChecksumTest {
  private static final int PARTITIONS = 5;

  /** A row and its partition. */
  private record Placed(InternalRow row, int partition) {}

  @Provide
  Arbitrary<StructType> schemas() {
    return TypeSet.schema(TypeSet.any(), 5);
  }

  @Property(tries = 300)
  void orderBatchesAndVectorsDoNotMatter(
      @ForAll("schemas") StructType schema,
      @ForAll BatchKind kind,
      @ForAll BatchKind otherKind,
      @ForAll long seed) {
    Random random = new Random(seed);
    List<Placed> rows = rows(schema, random, 40);
    List<Placed> shuffled = new ArrayList<>(rows);
    Collections.shuffle(shuffled, random);
    assertThat(checksum(schema, kind, rows, 40))
        .isEqualTo(checksum(schema, otherKind, shuffled, 1 + random.nextInt(40)));
  }

  @Property(tries = 300)
  void anotherRowIsNoticed(
      @ForAll("schemas") StructType schema, @ForAll BatchKind kind, @ForAll long seed) {
    Random random = new Random(seed);
    List<Placed> rows = rows(schema, random, 30);
    List<Placed> changed = new ArrayList<>(rows);
    Placed other = rows(schema, random, 1).get(0);
    int index = random.nextInt(rows.size());
    BinaryRows bytes = new BinaryRows(schema);
    Assume.that(!bytes.of(other.row()).equals(bytes.of(rows.get(index).row())));
    changed.set(index, new Placed(other.row(), rows.get(index).partition()));
    assertThat(checksum(schema, kind, changed, 30)).isNotEqualTo(checksum(schema, kind, rows, 30));
  }

  @Property(tries = 100)
  void missingRepeatedAndMovedRowsAreNoticed(
      @ForAll("schemas") StructType schema, @ForAll BatchKind kind, @ForAll long seed) {
    Random random = new Random(seed);
    List<Placed> rows = rows(schema, random, 20);
    long expected = checksum(schema, kind, rows, 20);
    int index = random.nextInt(rows.size());
    Placed one = rows.get(index);

    List<Placed> missing = new ArrayList<>(rows);
    missing.remove(index);
    assertThat(checksum(schema, kind, missing, 20)).isNotEqualTo(expected);

    List<Placed> twiceMore = new ArrayList<>(rows);
    twiceMore.add(one);
    twiceMore.add(one);
    assertThat(checksum(schema, kind, twiceMore, 20)).isNotEqualTo(expected);

    List<Placed> moved = new ArrayList<>(rows);
    moved.set(index, new Placed(one.row(), (one.partition() + 1) % PARTITIONS));
    assertThat(checksum(schema, kind, moved, 20)).isNotEqualTo(expected);
  }

  @Test
  void everyByteOfAStringMatters() {
    Set<Long> checksums = new HashSet<>();
    int texts = 0;
    for (int length = 0; length <= 70; length++) {
      byte[] text = new byte[length];
      assertThat(checksums.add(ofText(text))).as("%d zeros", length).isTrue();
      texts++;
      for (int i = 0; i < length; i++, texts++) {
        text[i] = 1;
        assertThat(checksums.add(ofText(text))).as("byte %d of %d", i, length).isTrue();
        text[i] = 0;
      }
    }
    assertThat(checksums).hasSize(texts);
  }

  private static long ofText(byte[] text) {
    InternalRow row = new GenericInternalRow(new Object[] {UTF8String.fromBytes(text)});
    return checksum(
        StructType.fromDDL("s string"), BatchKind.values()[0], List.of(new Placed(row, 1)), 1);
  }

  @Test
  void dictionariesDoNotMatter() {
    StructType schema = StructType.fromDDL("s string");
    List<Object> values =
        IntStream.range(0, 70)
            .<Object>mapToObj(length -> UTF8String.fromString("a".repeat(length)))
            .toList();
    List<InternalRow> rows = new ArrayList<>();
    for (int i = 0; i < 300; i++) {
      Object value = i % 7 == 0 ? null : values.get(i % values.size());
      rows.add(new GenericInternalRow(new Object[] {value}));
    }
    BatchChecksum decoded = new BatchChecksum(schema);
    try (ColumnarBatch batch =
        SourceVectors.parquet(schema, rows, true, new SourceVectors.ParquetValues(values))) {
      decoded.add(batch, new int[rows.size()]);
    }
    List<Placed> placed = rows.stream().map(row -> new Placed(row, 0)).toList();
    assertThat(decoded.value()).isEqualTo(checksum(schema, BatchKind.OFF_HEAP, placed, 64));
  }

  @Test
  void theOrderOfPackedRowsDoesNotMatter() {
    StructType schema = StructType.fromDDL("a bigint, b string");
    BinaryRows bytes = new BinaryRows(schema);
    List<Placed> rows = rows(schema, new Random(1), 20);
    BatchChecksum forwards = new BatchChecksum(schema);
    rows.forEach(placed -> forwards.add(bytes.of(placed.row()), placed.partition()));
    BatchChecksum backwards = new BatchChecksum(schema);
    Collections.reverse(rows);
    rows.forEach(placed -> backwards.add(bytes.of(placed.row()), placed.partition()));
    BatchChecksum fewer = new BatchChecksum(schema);
    rows.stream().skip(1).forEach(placed -> fewer.add(bytes.of(placed.row()), placed.partition()));
    assertThat(forwards.value()).isEqualTo(backwards.value()).isNotEqualTo(fewer.value());
  }

  private static List<Placed> rows(StructType schema, Random random, int count) {
    RandomRows generator = new RandomRows(random.nextLong(), random.nextInt(3) / 4.0);
    List<Placed> rows = new ArrayList<>();
    for (InternalRow row : generator.rows(schema, count)) {
      rows.add(new Placed(row, random.nextInt(PARTITIONS)));
    }
    return rows;
  }

  private static long checksum(
      StructType schema, BatchKind kind, List<Placed> rows, int batchRows) {
    BatchChecksum checksum = new BatchChecksum(schema);
    for (int start = 0; start < rows.size(); start += batchRows) {
      List<Placed> some = rows.subList(start, Math.min(rows.size(), start + batchRows));
      int[] ids = some.stream().mapToInt(Placed::partition).toArray();
      List<InternalRow> values = some.stream().map(Placed::row).toList();
      try (ColumnarBatch batch = kind.orIfUnfit(schema).batch(schema, values)) {
        checksum.add(batch, ids);
      }
    }
    return checksum.value();
  }
}
