package io.weft.spark.columns;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Rows survive the round trip for all types, vectors, partitions and batch sizes. */
class ScatterPropertyTest {
  @Provide
  Arbitrary<StructType> schemas() {
    return TypeSet.schema(TypeSet.any(), 5);
  }

  @Property(tries = 300)
  void everyRowArrivesOnceInItsPartition(
      @ForAll("schemas") StructType schema,
      @ForAll BatchKind kind,
      @ForAll @IntRange(min = 1, max = 7) int partitions,
      @ForAll @IntRange(min = 1, max = 40) int targetRows,
      @ForAll @IntRange(min = 1, max = 3) int nullsInTen,
      @ForAll long seed)
      throws Exception {
    Random random = new Random(seed);
    RandomRows generator = new RandomRows(seed, nullsInTen % 3 / 2.0);
    long targetBytes = 1L << (6 + random.nextInt(14));
    List<List<UnsafeRow>> expected = lists(partitions);
    BinaryRows bytes = new BinaryRows(schema);
    try (MemoryChunks chunks = new MemoryChunks();
        BatchScatter scatter =
            new BatchScatter(schema, partitions, chunks, targetRows, targetBytes)) {
      int batches = random.nextInt(5);
      for (int i = 0; i < batches; i++) {
        List<InternalRow> rows = generator.rows(schema, random.nextInt(60));
        int[] ids = random.ints(rows.size(), 0, partitions).toArray();
        for (int row = 0; row < ids.length; row++) {
          expected.get(ids[row]).add(bytes.of(rows.get(row)));
        }
        if (random.nextInt(4) == 0) {
          for (int row = 0; row < ids.length; row++) {
            scatter.append(
                random.nextBoolean() ? rows.get(row) : bytes.of(rows.get(row)), ids[row]);
          }
        } else {
          try (ColumnarBatch batch = kind.orIfUnfit(schema).batch(schema, rows)) {
            scatter.append(batch, ids);
          }
        }
      }
      scatter.finish();
      assertThat(chunks.openChunks()).isZero();
      assertThat(scatter.rows()).isEqualTo(expected.stream().mapToInt(List::size).sum());
      assertThat(scatter.batches()).isEqualTo(chunks.all().size());
      assertThat(scatter.packedBytes()).isEqualTo(packedBytes(schema, expected));
      for (int partition = 0; partition < partitions; partition++) {
        assertThat(read(schema, chunks, partition, targetRows)).isEqualTo(expected.get(partition));
      }
    }
  }

  /** The size that adaptive execution gets with Spark's own shuffle. */
  private static long packedBytes(StructType schema, List<List<UnsafeRow>> rows) {
    UnsafeProjection projection = UnsafeProjection.create(schema);
    return rows.stream()
        .flatMap(List::stream)
        .mapToLong(row -> projection.apply(row).getSizeInBytes())
        .sum();
  }

  private static List<List<UnsafeRow>> lists(int partitions) {
    List<List<UnsafeRow>> lists = new ArrayList<>();
    for (int i = 0; i < partitions; i++) {
      lists.add(new ArrayList<>());
    }
    return lists;
  }

  private static List<UnsafeRow> read(
      StructType schema, MemoryChunks chunks, int partition, int targetRows) {
    List<UnsafeRow> rows = new ArrayList<>();
    BinaryRows bytes = new BinaryRows(schema);
    try (BatchReader reader =
        new BatchReader(schema, chunks.read(chunks.of(partition)), targetRows)) {
      while (reader.hasNext()) {
        ColumnarBatch batch = reader.next();
        assertThat(batch.numRows()).isBetween(1, targetRows);
        rows.addAll(bytes.of(batch));
      }
    }
    return rows;
  }
}
