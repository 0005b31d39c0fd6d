package io.weft.spark.sql;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.sql.DealtRows.HashQuantiles;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.unsafe.Platform;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Dealing of rows for a repartition without keys. */
class DealtRowsTest {
  /** Little execution memory, so that large inputs are spilled. */
  @RegisterExtension
  static final SqlSpark SPARK =
      new SqlSpark(
          Map.of(
              "spark.testing.memory", "20000000",
              "spark.testing.reservedMemory", "1000000",
              "spark.buffer.pageSize", "1m"));

  @TempDir static Path folder;

  /** Of the running test. Tasks run in this process. */
  private static final AtomicReference<Callable<?>> WORK = new AtomicReference<>();

  @BeforeAll
  static void tables() {
    SPARK.with(
        Map.of("spark.weft.enabled", "false"),
        () -> {
          SampleTables.create(SPARK.session(), folder);
          return null;
        });
  }

  /** The expected partitions follow from the ranks of sorted hashes. */
  @ParameterizedTest(name = "{0} rows, {1} different, {2} longs, {3} partitions")
  @CsvSource({
    "1, 1, 3, 4",
    "2, 2, 1, 5",
    "5, 3, 0, 2",
    "100, 100, 3, 7",
    "100, 1, 3, 7",
    "1000, 3, 2, 16",
    "1000, 1000, 2, 16",
    "1000, 700, 2, 1500",
    "5000, 5000, 4, 300",
    "30000, 20, 1, 13",
    "30000, 25000, 9, 65536",
    "200000, 150000, 3, 16",
    "200000, 2, 3, 16",
    "1100000, 1100000, 1, 20000",
  })
  void partitionsAreQuantilesOfHashes(int rows, int different, int longs, int partitions)
      throws Exception {
    assertDealt(rows(rows, different, longs), partitions, 0);
  }

  @ParameterizedTest(name = "{0} rows, {1} different, {2} partitions")
  @CsvSource({"60000, 60000, 16", "60000, 3, 16", "60000, 50000, 50000"})
  void spilledRowsAreDealtLikeOthers(int rows, int different, int partitions) throws Exception {
    assertDealt(rows(rows, different, 60), partitions, 15_000_000);
  }

  @Test
  void rowsLargerThanAPage() throws Exception {
    List<UnsafeRow> rows = new ArrayList<>(rows(5, 5, 300_000));
    rows.addAll(rows(100, 90, 1));
    assertDealt(rows, 3, 5_000_000);
  }

  /** Another order of rows, and another occasion of spilling, gives the same partitions. */
  @Test
  void theOrderOfRowsDoesNotMatter() throws Exception {
    for (int seed = 0; seed < 60; seed++) {
      Random random = new Random(seed);
      int count = 1 + random.nextInt(seed % 10 == 0 ? 40_000 : 3_000);
      List<UnsafeRow> rows = rows(count, 1 + random.nextInt(count), random.nextInt(40));
      int partitions = 2 + random.nextInt(200);
      Map<List<Long>, int[]> dealt = deal(rows, partitions).placed();
      Collections.shuffle(rows, random);
      Map<List<Long>, int[]> again = deal(rows, partitions).placed();
      assertThat(again.keySet()).isEqualTo(dealt.keySet());
      dealt.forEach((row, counts) -> assertThat(again.get(row)).isEqualTo(counts));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "auto", "columns"})
  void allTypesArriveOnceAndEvenly(String route) {
    for (String table : List.of("facts", "made", "nothing", "skewed")) {
      for (String adaptive : List.of("true", "false")) {
        Map<String, String> settings =
            Map.of("spark.weft.route", route, "spark.sql.adaptive.enabled", adaptive);
        Dataset<Row> dealt = SPARK.session().table(table).repartition(6);
        assertThat(SPARK.with(settings, () -> RowTexts.unordered(dealt)))
            .isEqualTo(RowTexts.unordered(SPARK.session().table(table)));
        assertEven(settings, table);
      }
    }
  }

  /** Map tasks differ by at most one row between partitions; there are at most 4. */
  private static void assertEven(Map<String, String> settings, String table) {
    List<Row> counts =
        SPARK.with(
            settings,
            () ->
                SPARK
                    .session()
                    .table(table)
                    .repartition(6)
                    .groupBy(org.apache.spark.sql.functions.spark_partition_id())
                    .count()
                    .collectAsList());
    long[] sorted = counts.stream().mapToLong(row -> row.getLong(1)).sorted().toArray();
    if (sorted.length > 0) {
      assertThat(sorted).hasSize(6);
      assertThat(sorted[5] - sorted[0]).isLessThanOrEqualTo(4);
    }
  }

  /** Two rows with different bits are different rows, also if SQL calls their values equal. */
  @Test
  void numbersWithSeveralForms() {
    String values =
        "select /*+ repartition(3) */ * from values (0.0D), (-0.0D), (double('NaN')),"
            + " (cast(null as double)), (double('infinity')) as t(x)";
    Dataset<Row> rows = SPARK.session().sql(values);
    assertThat(rows.collectAsList().stream().map(row -> String.valueOf(row.get(0))))
        .containsExactlyInAnyOrder("0.0", "-0.0", "NaN", "null", "Infinity");
    assertThat(Plans.nodes(Plans.of(rows), RowsExchangeExec.class)).hasSize(1);
  }

  @Test
  void rowsWithoutColumns() {
    Dataset<Row> rows = SPARK.session().range(1000).select().repartition(7);
    assertThat(rows.count()).isEqualTo(1000);
  }

  @Test
  void theNodeAppearsOnlyWhereSparkSorts() {
    assertThat(exchanges(Map.of())).hasSize(1);
    assertThat(exchanges(Map.of("spark.weft.enabled", "false"))).isEmpty();
    assertThat(exchanges(Map.of("spark.sql.execution.sortBeforeRepartition", "false"))).isEmpty();
  }

  private static List<RowsExchangeExec> exchanges(Map<String, String> settings) {
    return SPARK.with(
        settings,
        () -> {
          Dataset<Row> rows = SPARK.session().range(10).toDF().repartition(3);
          assertThat(rows.collectAsList()).hasSize(10);
          return Plans.nodes(Plans.of(rows), RowsExchangeExec.class);
        });
  }

  /** Rows by content, with the number of times that each partition got them. */
  private record Dealt(Map<List<Long>, int[]> placed, List<Integer> sizes, long spilledBytes) {}

  private static void assertDealt(List<UnsafeRow> rows, int partitions, long spilled)
      throws Exception {
    Dealt dealt = deal(rows, partitions);
    assertThat(dealt.spilledBytes()).isGreaterThanOrEqualTo(spilled);
    assertThat(Collections.max(dealt.sizes()) - Collections.min(dealt.sizes()))
        .isLessThanOrEqualTo(1);
    Map<List<Long>, int[]> expected = expected(rows, partitions);
    assertThat(dealt.placed().keySet()).isEqualTo(expected.keySet());
    expected.forEach((row, counts) -> assertThat(dealt.placed().get(row)).isEqualTo(counts));
  }

  private static Map<List<Long>, int[]> expected(List<UnsafeRow> rows, int partitions) {
    List<UnsafeRow> sorted = new ArrayList<>(rows);
    sorted.sort((one, other) -> Long.compare(hash(one), hash(other)));
    Map<List<Long>, int[]> placed = new HashMap<>();
    for (int rank = 0; rank < sorted.size(); rank++) {
      int partition = (int) (3 + (long) rank * partitions / sorted.size()) % partitions;
      place(placed, sorted.get(rank), partition, partitions);
    }
    return placed;
  }

  private static long hash(UnsafeRow row) {
    return XXH64.hashUnsafeWords(
        row.getBaseObject(), row.getBaseOffset(), row.getSizeInBytes(), 42);
  }

  private static void place(
      Map<List<Long>, int[]> placed, UnsafeRow row, int partition, int partitions) {
    List<Long> content =
        LongStream.range(0, row.getSizeInBytes() / Long.BYTES)
            .map(i -> Platform.getLong(row.getBaseObject(), row.getBaseOffset() + i * Long.BYTES))
            .limit(64)
            .boxed()
            .toList();
    // Few partitions of many have a row.
    int[] counts = placed.computeIfAbsent(content, key -> new int[Math.min(partitions, 64)]);
    counts[partition % counts.length]++;
  }

  private static Dealt deal(List<UnsafeRow> rows, int partitions) throws Exception {
    return inTask(
        () -> {
          Map<List<Long>, int[]> placed = new HashMap<>();
          int[] sizes = new int[partitions];
          try (RowBuffer buffer = new RowBuffer(TaskContext.get())) {
            for (UnsafeRow row : rows) {
              buffer.append(row);
            }
            try (HashQuantiles quantiles = new HashQuantiles(buffer, partitions, 3)) {
              UnsafeRow row = new UnsafeRow(rows.get(0).numFields());
              while (buffer.next()) {
                buffer.point(row);
                int partition = quantiles.partition(buffer.hash());
                sizes[partition]++;
                place(placed, row, partition, partitions);
              }
            }
            assertThat(buffer.next()).isFalse();
            assertThat(buffer.getUsed()).isZero();
          }
          long spilled = TaskContext.get().taskMetrics().memoryBytesSpilled();
          return new Dealt(placed, Arrays.stream(sizes).boxed().toList(), spilled);
        });
  }

  @SuppressWarnings("unchecked")
  private static <T> T inTask(Callable<T> work) throws Exception {
    AtomicReference<T> result = new AtomicReference<>();
    WORK.set(
        () -> {
          result.set(work.call());
          return null;
        });
    JavaSparkContext.fromSparkContext(SPARK.session().sparkContext())
        .parallelize(List.of(1), 1)
        .foreach(unused -> WORK.get().call());
    return result.get();
  }

  /** Rows of longs, of which a number are different, in random order. */
  private static List<UnsafeRow> rows(int count, int different, int longs) {
    Random random = new Random(count * 31L + different);
    List<UnsafeRow> distinct =
        IntStream.range(0, different).mapToObj(i -> row(random, longs)).toList();
    List<UnsafeRow> rows = new ArrayList<>(distinct);
    while (rows.size() < count) {
      rows.add(distinct.get(random.nextInt(different)));
    }
    List<UnsafeRow> taken = new ArrayList<>(rows.subList(0, count));
    Collections.shuffle(taken, random);
    return taken;
  }

  private static UnsafeRow row(Random random, int longs) {
    UnsafeRow row = UnsafeRow.createFromByteArray(bytes(longs), longs);
    for (int i = 0; i < longs; i++) {
      row.setLong(i, random.nextLong());
    }
    return row;
  }

  private static int bytes(int longs) {
    return UnsafeRow.calculateBitSetWidthInBytes(longs) + longs * Long.BYTES;
  }
}
