package io.weft.shuffle.fetch;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.fetch.ChunkReceiver.ChunkNames;
import io.weft.shuffle.net.BlocksOpened;
import io.weft.shuffle.net.BlocksOpened.ChunkTable;
import io.weft.shuffle.net.OpenBlocks.StreamId;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.ChunkEncryptor.EncryptedChunkFormat.ChunkName;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The names of chunks in an answer that begins inside a partition. */
class ChunkNamesTest {
  private static final BlockKey FIRST = new BlockKey(3, 70);
  private static final BlockKey EMPTY = new BlockKey(3, 71);
  private static final BlockKey LAST = new BlockKey(4, 72);

  private static BlocksOpened answer(int position, List<BlockKey> keys, int[] chunks, int... in) {
    ChunkTable table = new ChunkTable().startAt(position);
    for (int partition : in) {
      table.add(partition, 1, 0, 1, 1);
    }
    return new BlocksOpened(new StreamId(1, 2), 0, true, keys, chunks, table);
  }

  private static ChunkName name(BlockKey key, int partition, int position) {
    return new ChunkName(key.shuffleId(), key.mapId(), partition, position);
  }

  @Test
  void theyAreCountedInEachPartitionOfEachRange() {
    BlocksOpened answer =
        answer(5, List.of(FIRST, EMPTY, LAST), new int[] {4, 0, 3}, 2, 2, 3, 6, 6, 6, 8);
    ChunkNames names = new ChunkNames(answer);
    assertThat(IntStream.range(0, 7).mapToObj(names::of))
        .containsExactly(
            name(FIRST, 2, 5),
            name(FIRST, 2, 6),
            name(FIRST, 3, 0),
            name(FIRST, 6, 0),
            name(LAST, 6, 0),
            name(LAST, 6, 1),
            name(LAST, 8, 0));
  }

  @Test
  void indexesMayBeSkipped() {
    BlocksOpened answer =
        answer(0, List.of(EMPTY, FIRST, EMPTY, LAST), new int[] {0, 3, 0, 2}, 2, 2, 2, 1, 1);
    ChunkNames names = new ChunkNames(answer);
    assertThat(names.of(2)).isEqualTo(name(FIRST, 2, 2));
    assertThat(names.of(2)).isEqualTo(name(FIRST, 2, 2));
    assertThat(names.of(4)).isEqualTo(name(LAST, 1, 1));
  }
}
