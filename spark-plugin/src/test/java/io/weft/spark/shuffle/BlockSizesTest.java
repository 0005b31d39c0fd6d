package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.weft.spark.shuffle.BlockSizes.RowSample;
import io.weft.spark.shuffle.BlockSizes.TaskSizes;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import org.apache.spark.SparkConf;
import org.apache.spark.io.CompressionCodec$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class BlockSizesTest {
  private static final int CHUNK_ROWS = 500;

  @ParameterizedTest
  @ValueSource(strings = {"lz4", "zstd", "snappy"})
  void smallOutputsHaveSparksSizes(String codec) throws IOException {
    SparkConf conf = new SparkConf(false).set("spark.io.compression.codec", codec);
    List<List<UnsafeRow>> blocks = new ArrayList<>();
    for (int rows : new int[] {0, 1, 3, 100, 0, 40}) {
      blocks.add(rows(rows, rows, 10));
    }
    assertThat(reported(new BlockSizes(conf), blocks)).isEqualTo(sparks(conf, blocks));
  }

  /** More blocks than have a sample in a longer output. */
  @Test
  void aFewRowsOverManyPartitionsHaveSparksSizes() throws IOException {
    SparkConf conf = new SparkConf(false);
    List<List<UnsafeRow>> blocks = new ArrayList<>();
    for (int p = 0; p < 100; p++) {
      blocks.add(rows(p, p == 70 ? 40 : 1, 10));
    }
    assertThat(blocks.stream().mapToInt(List::size).sum() * 28).isBetween(3000, 4096);
    assertThat(reported(new BlockSizes(conf), blocks)).isEqualTo(sparks(conf, blocks));
    blocks.set(3, rows(3, 60, 10));
    assertThat(reported(new BlockSizes(conf), blocks)).isNotEqualTo(sparks(conf, blocks));
  }

  @ParameterizedTest
  @ValueSource(ints = {3, 16, 40, 500})
  void largeOutputsAreWithinATenth(int partitions) throws IOException {
    SparkConf conf = new SparkConf(false);
    Random random = new Random(partitions);
    List<List<UnsafeRow>> blocks = new ArrayList<>();
    for (int p = 0; p < partitions; p++) {
      blocks.add(rows(p, 20 + random.nextInt(120_000 / partitions), 1000));
    }
    long[] expected = sparks(conf, blocks);
    long[] actual = reported(new BlockSizes(conf), blocks);
    assertThat((double) sum(actual)).isCloseTo((double) sum(expected), within(0.1 * sum(expected)));
    for (int p = 0; p < partitions; p++) {
      assertThat((double) actual[p])
          .isCloseTo((double) expected[p], within(0.25 * expected[p] + 64));
    }
  }

  /** Nearly all rows are in one partition, and they are equal. */
  @Test
  void aFrequentKeyHasItsOwnRatio() throws IOException {
    SparkConf conf = new SparkConf(false);
    List<List<UnsafeRow>> blocks = new ArrayList<>();
    for (int p = 0; p < 100; p++) {
      blocks.add(p == 37 ? rows(p, 50_000, 1) : rows(p, 300, Integer.MAX_VALUE));
    }
    long[] expected = sparks(conf, blocks);
    long[] actual = reported(new BlockSizes(conf), blocks);
    assertThat((double) actual[37]).isCloseTo((double) expected[37], within(0.2 * expected[37]));
  }

  @Test
  void aLargeBlockAmongManySmallOnesHasSparksSize() throws IOException {
    SparkConf conf = new SparkConf(false);
    List<List<UnsafeRow>> blocks = new ArrayList<>();
    for (int p = 0; p < 100; p++) {
      blocks.add(rows(p, p == 37 ? 100 : 1 + p % 2, 1000));
    }
    assertThat(reported(new BlockSizes(conf), blocks)[37]).isEqualTo(sparks(conf, blocks)[37]);
  }

  @Test
  void laterTasksUseTheModelOfEarlierOnes() throws IOException {
    SparkConf conf = new SparkConf(false);
    BlockSizes sizes = new BlockSizes(conf);
    List<List<UnsafeRow>> blocks = new ArrayList<>();
    for (int p = 0; p < 10; p++) {
      blocks.add(rows(p, 500, 1000));
    }
    for (int task = 0; task < 17; task++) {
      assertThat(reported(sizes, 5, blocks)).as("task " + task).isEqualTo(sparks(conf, blocks));
    }
    assertThat(sizes.open(5, 10).add(0, 100, 1)).as("a sample").isFalse();
    double expected = sum(sparks(conf, blocks));
    assertThat((double) sum(reported(sizes, 5, blocks)))
        .isCloseTo(expected, within(0.1 * expected));
    sizes.forget(5);
    assertThat(sizes.open(5, 10).add(0, 100, 1)).as("a sample").isTrue();
  }

  @Test
  void aRowLongerThanASampleIsCompressedInPart() throws IOException {
    SparkConf conf = new SparkConf(false);
    List<List<UnsafeRow>> blocks = List.of(List.of(row(new Random(1), 4 << 20)));
    double expected = sparks(conf, blocks)[0];
    assertThat((double) reported(new BlockSizes(conf), blocks)[0])
        .isCloseTo(expected, within(0.05 * expected));
  }

  @Test
  void realSizesAndUncompressedSizesNeedNoSample() throws IOException {
    List<List<UnsafeRow>> blocks = List.of(rows(1, 10, 10), List.of());
    SparkConf real = new SparkConf(false).set("spark.weft.reportedSizes", "real");
    TaskSizes task = new BlockSizes(real).open(1, 2);
    assertThat(task.add(0, 100, 10)).isFalse();
    assertThat(task.reported(new long[] {12345, 0})).containsExactly(12345, 0);
    SparkConf plain = new SparkConf(false).set("spark.shuffle.compress", "false");
    long bytes = blocks.get(0).stream().mapToLong(row -> 4L + row.getSizeInBytes()).sum();
    assertThat(reported(new BlockSizes(plain), blocks)).containsExactly(bytes, 0);
  }

  private static long sum(long[] sizes) {
    return LongStream.of(sizes).sum();
  }

  private static long[] reported(BlockSizes sizes, List<List<UnsafeRow>> blocks) {
    return reported(sizes, 1, blocks);
  }

  /** Adds rows in chunks, round by round over the partitions. */
  private static long[] reported(BlockSizes sizes, int shuffleId, List<List<UnsafeRow>> blocks) {
    TaskSizes task = sizes.open(shuffleId, blocks.size());
    int most = blocks.stream().mapToInt(List::size).max().orElseThrow();
    for (int from = 0; from < most; from += CHUNK_ROWS) {
      for (int p = 0; p < blocks.size(); p++) {
        List<UnsafeRow> block = blocks.get(p);
        if (from < block.size()) {
          chunk(task, p, block.subList(from, Math.min(block.size(), from + CHUNK_ROWS)));
        }
      }
    }
    return task.reported(blocks.stream().mapToLong(List::size).toArray());
  }

  private static void chunk(TaskSizes task, int partition, List<UnsafeRow> rows) {
    long bytes = rows.stream().mapToLong(UnsafeRow::getSizeInBytes).sum();
    if (task.add(partition, bytes, rows.size())) {
      RowSample sample = task.sample(partition);
      for (int i = 0; i < rows.size() && !sample.isFull(); i++) {
        sample.add(rows.get(i));
      }
    }
  }

  private static long[] sparks(SparkConf conf, List<List<UnsafeRow>> blocks) throws IOException {
    long[] sizes = new long[blocks.size()];
    for (int p = 0; p < sizes.length; p++) {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      try (DataOutputStream out =
          new DataOutputStream(
              CompressionCodec$.MODULE$.createCodec(conf).compressedOutputStream(bytes))) {
        for (UnsafeRow row : blocks.get(p)) {
          out.writeInt(row.getSizeInBytes());
          out.write(row.getBytes());
        }
      }
      sizes[p] = blocks.get(p).isEmpty() ? 0 : bytes.size();
    }
    return sizes;
  }

  /** Rows of two numbers below a bound. */
  private static List<UnsafeRow> rows(long seed, int count, int bound) {
    Random random = new Random(seed);
    List<UnsafeRow> rows = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      UnsafeRow row = new UnsafeRow(2);
      row.pointTo(new byte[24], 24);
      row.setLong(0, random.nextInt(bound));
      row.setLong(1, random.nextInt(bound));
      rows.add(row);
    }
    return rows;
  }

  /** A row of random bytes, half of them zeros. */
  private static UnsafeRow row(Random random, int bytes) {
    byte[] all = new byte[bytes];
    for (int i = 0; i < bytes; i += 2) {
      all[i] = (byte) random.nextInt();
    }
    Arrays.fill(all, 0, 16, (byte) 0);
    UnsafeRow row = new UnsafeRow(1);
    row.pointTo(all, Platform.BYTE_ARRAY_OFFSET, bytes);
    return row;
  }
}
