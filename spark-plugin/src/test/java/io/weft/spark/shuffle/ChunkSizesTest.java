package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.shuffle.PartitionChunks.ChunkSizes;
import org.junit.jupiter.api.Test;

class ChunkSizesTest {
  private static final int KIB = 1 << 10;
  private static final int MIB = 1 << 20;

  private final ChunkSizes sizes = new ChunkSizes(64 * MIB);

  @Test
  void guessesSmallForManyPartitionsAndLargerForFew() {
    assertThat(ChunkSizes.first(null, 0, 200, sizes.max(200))).isEqualTo(4 * KIB);
    assertThat(ChunkSizes.first(null, 0, 8, sizes.max(8))).isEqualTo(64 * KIB);
  }

  @Test
  void growsFurtherForFewPartitions() {
    assertThat(sizes.max(200)).isEqualTo(MIB);
    assertThat(sizes.max(8)).isEqualTo(4 * MIB);
  }

  @Test
  void neverTakesALargePartOfASegment() {
    assertThat(new ChunkSizes(MIB).max(8)).isEqualTo(64 * KIB);
  }

  @Test
  void followsTheLastMapOutput() {
    sizes.wrote(3, new long[] {80 * KIB, 0, 100 * MIB});
    long[] last = sizes.last(3);
    assertThat(ChunkSizes.first(last, 0, 3, sizes.max(3))).isEqualTo(90 * KIB);
    assertThat(ChunkSizes.first(last, 1, 3, sizes.max(3))).isEqualTo(64 * KIB);
    assertThat(ChunkSizes.first(last, 2, 3, sizes.max(3))).isEqualTo(4 * MIB);
    sizes.forget(3);
    assertThat(sizes.last(3)).isNull();
  }
}
