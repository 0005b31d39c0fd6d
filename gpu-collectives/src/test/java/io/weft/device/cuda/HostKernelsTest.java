package io.weft.device.cuda;

import static io.weft.device.cuda.KernelTable.ints;
import static io.weft.device.cuda.KernelTable.longs;
import static io.weft.device.cuda.KernelTable.section;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.weft.device.cuda.KernelRun.Launch;
import io.weft.device.cuda.KernelTable.KernelColumn;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;
import net.jqwik.api.lifecycle.BeforeContainer;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The kernels in their own source, without a GPU and without a double of its driver: they compute
 * what Spark computes, and no sanitizer finds a fault. Buffers have their exact sizes.
 */
class HostKernelsTest {
  private static final int SEED = 42;
  private static final int MAX_COLUMNS = 64;
  private static final int TILE = 4096;
  private static final int DIGITS = 256;
  private static final int COLUMN_BYTES = 40;
  private static final int GARBAGE = 0xab;

  @BeforeAll
  @BeforeContainer
  static void needsACompiler() {
    assumeTrue(KernelRun.whyNot().isEmpty(), KernelRun::whyNot);
  }

  /** Otherwise the other tests would prove less. */
  @Test
  void sanitizersAreOn() {
    assumeTrue(KernelRun.sanitizers().startsWith("-f"), KernelRun::sanitizers);
    KernelRun run = new KernelRun();
    int short1 = run.buffer(4 * 99 + 3, 0);
    run.forEach("weft_hash", 100).address(short1).longs(100).ints(0, SEED, 1, 0).end(2592);
    assertThatThrownBy(run::run)
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("heap-buffer-overflow")
        .hasMessageContaining("weft_hash");
  }

  /** With more than 64 columns, several launches continue the hash. */
  @Property(tries = 25, shrinking = ShrinkingMode.OFF)
  void hashIsSparks(@ForAll long seed) {
    Random random = new Random(seed);
    int rows = random.nextInt(500);
    int partitions = random.nextInt(3) == 0 ? 0 : 1 + random.nextInt(3000);
    KernelTable table = new KernelTable(random, rows, 1 + random.nextInt(80), false);
    KernelRun run = new KernelRun();
    int hashes = run.buffer(4L * rows, GARBAGE);
    hash(run, table, hashes, partitions);
    int[] expected =
        IntStream.range(0, rows)
            .map(row -> table.hash(row, SEED))
            .map(hash -> partitions == 0 ? hash : Math.floorMod(hash, partitions))
            .toArray();
    assertThat(ints(run.run().get(hashes))).isEqualTo(expected);
  }

  private static void hash(KernelRun run, KernelTable table, int hashes, int partitions) {
    int count = table.columns.size();
    for (int first = 0; first < count; first += MAX_COLUMNS) {
      List<KernelColumn> some = table.columns.subList(first, Math.min(count, first + MAX_COLUMNS));
      boolean isLast = first + MAX_COLUMNS >= count;
      Launch launch = run.forEach("weft_hash", table.rows).address(hashes).longs(table.rows);
      launch.ints(some.size(), SEED, first == 0 ? 1 : 0, isLast ? partitions : 0);
      some.forEach(column -> column.put(run, launch, -1));
      launch.end(32 + MAX_COLUMNS * COLUMN_BYTES);
    }
  }

  /** Rows keep their order within a partition. */
  @Property(tries = 12, shrinking = ShrinkingMode.OFF)
  void orderIsStable(@ForAll long seed) {
    Random random = new Random(seed);
    int[] sizes = {1, 2, 31, 255, 4095, 4096, 4097, 9001};
    int rows = sizes[random.nextInt(sizes.length)];
    int[] counts = {1, 2, 255, 256, 257, 70_000};
    int partitions = counts[random.nextInt(counts.length)];
    int[] keys = random.ints(rows, 0, partitions).toArray();
    KernelRun run = new KernelRun();
    Sorted sorted = sort(run, run.buffer(ints(keys)), rows, partitions);
    List<ByteBuffer> made = run.run();
    int[] order = order(keys);
    assertThat(ints(made.get(sorted.order()))).isEqualTo(order);
    assertThat(ints(made.get(sorted.keys())))
        .isEqualTo(Arrays.stream(order).map(row -> keys[row]).toArray());
    int[] positions = ints(made.get(sorted.positions()));
    IntStream.range(0, rows).forEach(i -> assertThat(positions[order[i]]).isEqualTo(i));
    assertThat(ints(made.get(sorted.starts()))).isEqualTo(starts(keys, partitions));
    assertThat(ints(made.get(sorted.faults()))).containsExactly(0);
  }

  private static int[] order(int[] keys) {
    return IntStream.range(0, keys.length)
        .boxed()
        .sorted(Comparator.comparingInt(row -> keys[row]))
        .mapToInt(Integer::intValue)
        .toArray();
  }

  private static int[] starts(int[] keys, int partitions) {
    int[] starts = new int[partitions + 1];
    for (int key : keys) {
      starts[key + 1]++;
    }
    Arrays.parallelPrefix(starts, Integer::sum);
    return starts;
  }

  @Test
  void partitionOutOfRangeIsAFault() {
    for (int wrong : new int[] {7, -1, Integer.MIN_VALUE}) {
      KernelRun run = new KernelRun();
      Sorted sorted = sort(run, run.buffer(ints(0, 6, wrong, 3)), 4, 7);
      assertThat(ints(run.run().get(sorted.faults()))).containsExactly(1);
    }
  }

  /** Buffers with the results of a sort. */
  private record Sorted(
      int rowKeys,
      int keys,
      int order,
      int positions,
      int starts,
      int faults,
      int rows,
      int counts) {}

  private static int tiles(int items) {
    return (items + TILE - 1) / TILE;
  }

  private static Sorted sort(KernelRun run, int rowKeys, int rows, int partitions) {
    int faults = run.buffer(4, 0);
    int positions = run.buffer(4L * rows, GARBAGE);
    int bits = 32 - Integer.numberOfLeadingZeros(partitions - 1);
    int passes = Math.max(1, (bits + 7) / 8);
    int keys = rowKeys;
    int order = -1;
    int counts = -1;
    for (int pass = 0; pass < passes; pass++) {
      counts = run.buffer(4L * DIGITS * tiles(rows), GARBAGE);
      run.launch("weft_count", tiles(rows), 256)
          .address(keys)
          .address(counts)
          .address(pass == 0 ? faults : -1)
          .longs(rows, tiles(rows))
          .ints(8 * pass, partitions)
          .end(48);
      scan(run, counts, DIGITS * tiles(rows));
      int toKeys = run.buffer(4L * rows, GARBAGE);
      int toOrder = run.buffer(4L * rows, GARBAGE);
      run.launch("weft_sort", tiles(rows), 256)
          .address(keys)
          .address(order)
          .address(counts)
          .address(toKeys)
          .address(toOrder)
          .address(pass == passes - 1 ? positions : -1)
          .longs(rows, tiles(rows), 8L * pass)
          .end(72);
      keys = toKeys;
      order = toOrder;
    }
    int starts = run.buffer(4L * (partitions + 1), GARBAGE);
    run.forEach("weft_starts", partitions + 1)
        .address(keys)
        .address(starts)
        .longs(rows, partitions)
        .end(32);
    return new Sorted(rowKeys, keys, order, positions, starts, faults, rows, counts);
  }

  private static void scan(KernelRun run, int values, int items) {
    int sums = run.buffer(4L * tiles(items), GARBAGE);
    for (String kernel : List.of("weft_scan_tiles", "weft_scan_sums", "weft_scan_values")) {
      int blocks = kernel.equals("weft_scan_sums") ? 1 : tiles(items);
      run.launch(kernel, blocks, 256).address(values).address(sums).longs(items).end(24);
    }
  }

  @Property(tries = 15, shrinking = ShrinkingMode.OFF)
  void partitionsHaveTheirRows(@ForAll long seed) {
    Random random = new Random(seed);
    int rows = 1 + random.nextInt(random.nextBoolean() ? 40 : 700);
    int partitions = 1 + random.nextInt(random.nextBoolean() ? 20 : 300);
    KernelTable table = new KernelTable(random, rows, 1 + random.nextInt(20), true);
    assertPacked(table, random.ints(rows, 0, partitions).toArray(), partitions);
  }

  /** Full and partial tiles, partitions without rows, one and several passes of the sort. */
  @ParameterizedTest
  @CsvSource({
    "4095, 1, 1",
    "4096, 200, 1",
    "4097, 200, 200",
    "8192, 256, 256",
    "9001, 256, 3",
    "9001, 2, 2",
    "9001, 257, 257",
    "8193, 600, 5"
  })
  void tilesAreWhole(int rows, int partitions, int used) {
    Random random = new Random(rows + partitions);
    KernelTable table = new KernelTable(random, rows, 14, true);
    int[] some = random.ints(used, 0, partitions).toArray();
    int[] keys = random.ints(rows, 0, used).map(i -> used == partitions ? i : some[i]).toArray();
    assertPacked(table, keys, partitions);
  }

  /** Every byte of the result is compared, also those between the sections. */
  private static void assertPacked(KernelTable table, int[] keys, int partitions) {
    int rows = keys.length;
    KernelRun run = new KernelRun();
    Sorted sorted = sort(run, run.buffer(ints(keys)), rows, partitions);
    PackedTables packed = new PackedTables(table, keys, partitions);
    int result = pack(run, table, sorted, packed);
    assertThat(run.run().get(result).slice()).isEqualTo(ByteBuffer.wrap(packed.bytes()));
  }

  /** The expected partitions of a table, one after the other. */
  private static final class PackedTables {
    private final KernelTable table;
    private final int partitions;
    private final long[] places;
    private final int[][] stringBytes;
    private final List<byte[]> sections = new ArrayList<>();
    private int end;

    PackedTables(KernelTable table, int[] keys, int partitions) {
      this.table = table;
      this.partitions = partitions;
      this.places = new long[table.columns.size() * partitions];
      this.stringBytes = new int[table.columns.size()][partitions];
      for (int p = 0; p < partitions; p++) {
        int partition = p;
        int[] rows = IntStream.range(0, keys.length).filter(r -> keys[r] == partition).toArray();
        table.columns.forEach(column -> add(column, partition, rows));
      }
    }

    private void add(KernelColumn column, int partition, int[] rows) {
      places[column.number * partitions + partition] = end;
      if (column.isNullable()) {
        byte[] bits = new byte[section((rows.length + 7) / 8)];
        for (int i = 0; i < rows.length; i++) {
          bits[i / 8] |= (byte) ((column.isValid(rows[i]) ? 1 : 0) << i % 8);
        }
        add(bits);
      }
      int[] offsets = new int[rows.length + 1];
      for (int i = 0; i < rows.length; i++) {
        offsets[i + 1] = offsets[i] + column.value(rows[i]).length;
      }
      if (column.isString()) {
        add(ints(offsets));
        stringBytes[column.number][partition] = offsets[rows.length];
      }
      ByteBuffer values = ByteBuffer.allocate(offsets[rows.length]);
      Arrays.stream(rows).forEach(row -> values.put(column.value(row)));
      add(values.array());
    }

    private void add(byte[] bytes) {
      sections.add(Arrays.copyOf(bytes, section(bytes.length)));
      end += section(bytes.length);
    }

    byte[] bytes() {
      ByteBuffer all = ByteBuffer.allocate(end);
      sections.forEach(all::put);
      return all.array();
    }

    /** The first fields of the launches: the struct packing. */
    Launch into(Launch launch, int result, int placesBuffer, Sorted sorted) {
      return launch
          .address(result)
          .address(placesBuffer)
          .address(sorted.starts())
          .longs(partitions);
    }
  }

  private static int pack(KernelRun run, KernelTable table, Sorted sorted, PackedTables packed) {
    int result = run.buffer(packed.end, GARBAGE);
    int places = run.buffer(longs(packed.places));
    List<KernelColumn> columns = table.columns;
    int all = MAX_COLUMNS * COLUMN_BYTES;
    Launch clear =
        packed
            .into(
                run.forEach("weft_clear", 32L * columns.size() * packed.partitions),
                result,
                places,
                sorted)
            .longs(columns.size());
    columns.forEach(
        column ->
            column.put(
                run,
                clear,
                column.isString() ? run.buffer(ints(packed.stringBytes[column.number])) : -1));
    clear.end(40 + all);
    List<KernelColumn> nullable = columns.stream().filter(KernelColumn::isNullable).toList();
    Launch validity =
        packed.into(run.forEach("weft_pack_validity", table.rows), result, places, sorted);
    validity.address(sorted.keys()).address(sorted.order()).longs(table.rows, nullable.size());
    nullable.forEach(column -> column.put(run, validity, -1));
    validity.end(64 + all);
    List<KernelColumn> narrow = columns.stream().filter(KernelColumn::isNarrow).toList();
    boolean isOnePass = packed.partitions <= DIGITS;
    Launch launch =
        isOnePass
            ? run.launch("weft_pack_runs", tiles(table.rows), 512)
            : run.forEach("weft_pack_values", table.rows);
    Launch values = packed.into(launch, result, places, sorted);
    values.address(isOnePass ? sorted.counts() : sorted.rowKeys());
    values.address(isOnePass ? sorted.order() : sorted.positions());
    values.longs(table.rows, narrow.size());
    narrow.forEach(column -> column.put(run, values, -1));
    values.end(64 + all);
    for (KernelColumn column : columns) {
      if (column.isString()) {
        packStrings(run, column, sorted, packed, result, places);
      } else if (!column.isNarrow()) {
        int unit = Math.min(16, Integer.lowestOneBit(column.width));
        long items = (long) table.rows * (column.width / unit);
        Launch wide = packed.into(run.forEach("weft_pack_rows", items), result, places, sorted);
        wide.address(sorted.rowKeys()).address(sorted.positions()).longs(table.rows, unit);
        column.put(run, wide, -1);
        wide.end(64 + COLUMN_BYTES);
      }
    }
    return result;
  }

  private static void packStrings(
      KernelRun run,
      KernelColumn column,
      Sorted sorted,
      PackedTables packed,
      int result,
      int places) {
    int rows = sorted.rows();
    int sums = run.buffer(4L * (rows + 1), GARBAGE);
    Launch lengths = run.forEach("weft_lengths", rows + 1).address(sorted.order()).address(sums);
    column.put(run, lengths.address(sorted.faults()).longs(rows), -1);
    lengths.end(32 + COLUMN_BYTES);
    scan(run, sums, rows + 1);
    long chunks = (column.data.length + 1023) / 1024;
    for (String kernel : List.of("weft_pack_offsets", "weft_pack_bytes")) {
      long items = kernel.endsWith("bytes") ? 32 * chunks : rows + packed.partitions;
      Launch strings = packed.into(run.forEach(kernel, items), result, places, sorted);
      strings.address(sorted.keys()).address(sorted.order()).longs(rows).address(sums);
      column.put(run, strings, -1);
      strings.end(64 + COLUMN_BYTES);
    }
  }
}
