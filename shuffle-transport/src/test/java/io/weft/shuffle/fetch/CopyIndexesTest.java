package io.weft.shuffle.fetch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.ExchangeOptions.CopyListener;
import io.weft.shuffle.ExchangeOptions.CopyOptions;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.CopiedOutput;
import io.weft.shuffle.store.CopyStore;
import io.weft.support.TestBlocks;
import io.weft.support.TestCluster;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which indexes of copies are kept. Each copy has three partitions and two chunks. */
class CopyIndexesTest {
  private static final int SHUFFLES = 2;
  private static final int MAPS = 3;
  private static final int SIZE = 3 + 2;

  @TempDir Path folder;

  private final Files store = new Files();
  private TestCluster cluster;

  @BeforeEach
  void makeCopies() throws IOException {
    cluster = new TestCluster(folder);
    CopyListener driver =
        new CopyListener() {
          @Override
          public boolean isCopied(BlockKey key) {
            return false;
          }

          @Override
          public void copied(BlockKey key, boolean own, boolean leaves) {}
        };
    cluster.copies(
        Optional.of(new CopyOptions(store, "copies", 1 << 20, Duration.ofMinutes(5), driver)));
    ExecutorExchange owner = cluster.open("owner");
    for (int shuffle = 0; shuffle < SHUFFLES; shuffle++) {
      for (int map = 0; map < MAPS; map++) {
        TestBlocks.write(
            owner,
            new BlockKey(shuffle, map),
            3,
            (ofMap, partition, chunk) -> partition < 2 && chunk == 0 ? 10 : 0);
      }
    }
    await().untilAsserted(() -> assertThat(store.files).hasSize(SHUFFLES * MAPS));
  }

  @AfterEach
  void stop() throws IOException {
    cluster.close();
  }

  private int readsOf(CopyIndexes indexes, int shuffle, int map) throws IOException {
    int before = store.reads.get();
    try (CopiedOutput copy = indexes.open(store, new BlockKey(shuffle, map), "owner")) {
      assertThat(copy.index().key()).isEqualTo(new BlockKey(shuffle, map));
      assertThat(copy.index().chunks() + copy.index().partitions()).isEqualTo(SIZE);
    }
    return store.reads.get() - before;
  }

  @Test
  void eachIndexIsReadOnceUntilItsShuffleEnds() throws IOException {
    CopyIndexes indexes = new CopyIndexes();
    for (int map = 0; map < MAPS; map++) {
      assertThat(readsOf(indexes, 0, map)).isEqualTo(1);
      assertThat(readsOf(indexes, 1, map)).isEqualTo(1);
      assertThat(readsOf(indexes, 0, map)).isZero();
    }
    indexes.removeShuffle(0);
    assertThat(readsOf(indexes, 0, 0)).isEqualTo(1);
    assertThat(readsOf(indexes, 1, 0)).isZero();
  }

  @Test
  void theFirstOnesAreKeptUpToALimitAndMakeRoomWhenTheirShuffleEnds() throws IOException {
    CopyIndexes indexes = new CopyIndexes(2 * SIZE);
    for (int round = 0; round < 2; round++) {
      assertThat(readsOf(indexes, 0, 0)).isEqualTo(round == 0 ? 1 : 0);
      assertThat(readsOf(indexes, 0, 1)).isEqualTo(round == 0 ? 1 : 0);
      assertThat(readsOf(indexes, 1, 0)).isEqualTo(1);
    }
    indexes.removeShuffle(0);
    indexes.removeShuffle(0);
    for (int map = 0; map < MAPS; map++) {
      assertThat(readsOf(indexes, 1, map)).isEqualTo(1);
    }
    assertThat(readsOf(indexes, 1, 0)).isZero();
    assertThat(readsOf(indexes, 1, 1)).isZero();
    assertThat(readsOf(indexes, 1, 2)).isEqualTo(1);
  }

  /** Copies in memory. */
  private static final class Files implements CopyStore {
    final Map<BlockKey, byte[]> files = new ConcurrentHashMap<>();
    final AtomicInteger reads = new AtomicInteger();

    @Override
    public OutputStream create(BlockKey key) {
      return new ByteArrayOutputStream() {
        @Override
        public void close() {
          files.put(key, toByteArray());
        }
      };
    }

    @Override
    public CopyInput open(BlockKey key, String writer) {
      byte[] bytes = files.get(key);
      return new CopyInput() {
        @Override
        public int read(long position, byte[] into, int offset, int least, int most) {
          reads.incrementAndGet();
          int count = (int) Math.min(most, bytes.length - position);
          System.arraycopy(bytes, (int) position, into, offset, count);
          return count;
        }

        @Override
        public void close() {}
      };
    }

    @Override
    public void delete(BlockKey key) {
      files.remove(key);
    }

    @Override
    public void close() {}
  }
}
