package io.weft.shuffle.fetch;

import static io.weft.support.TestBlocks.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.support.TestBlocks;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A reader that retains its chunks keeps all of them, on every path. */
class RetainedChunksTest {
  private static final int CHUNKS = 40;
  private static final long CHUNK_BYTES = 100_000;
  private static final BlockKey KEY = new BlockKey(1, 0);

  @TempDir Path folder;

  /** The address of a chunk. */
  private record Seen(long address, long length) {}

  private static List<BlockRequest> writtenBy(ExecutorExchange owner) throws IOException {
    TestBlocks.write(owner, KEY, 1, (map, partition, chunk) -> chunk < CHUNKS ? CHUNK_BYTES : 0);
    return List.of(request(owner.address().executorId(), KEY, 0, 1, CHUNKS * CHUNK_BYTES));
  }

  /** Reads ten times the bytes that may be in flight. */
  @ParameterizedTest
  @EnumSource(
      value = TransportMode.class,
      names = {"AUTO", "TCP"})
  void allStayReadableUntilTheReaderIsClosed(TransportMode mode) throws IOException {
    try (TestCluster cluster = new TestCluster(folder).mode(mode).window(200_000, 400_000)) {
      List<BlockRequest> requests = writtenBy(cluster.open("owner"));
      ExecutorExchange exchange = cluster.open("reader");
      long before = exchange.statistics().arena().usedBytes();
      try (ChunkReader reader = exchange.read(requests, FetchListener.NONE)) {
        reader.retainAll();
        List<Seen> seen = new ArrayList<>();
        while (reader.next()) {
          seen.add(new Seen(reader.address(), reader.length()));
        }
        assertThat(seen).hasSize(CHUNKS).doesNotHaveDuplicates();
        for (int chunk = 0; chunk < CHUNKS; chunk++) {
          Seen one = seen.get(chunk);
          TestBlocks.assertContents(one.address(), one.length(), KEY, 0, chunk);
        }
      }
      // The connection returns the memory of the last chunk on its own thread.
      await("the reader's memory is freed")
          .atMost(Duration.ofSeconds(20))
          .untilAsserted(
              () -> assertThat(exchange.statistics().arena().usedBytes()).isEqualTo(before));
    }
  }

  @Test
  void itIsTooLateAfterTheFirstChunk() throws IOException {
    try (TestCluster cluster = new TestCluster(folder)) {
      ExecutorExchange owner = cluster.open("owner");
      try (ChunkReader reader = owner.read(writtenBy(owner), FetchListener.NONE)) {
        assertThat(reader.next()).isTrue();
        assertThatThrownBy(reader::retainAll).hasMessageContaining("were read already");
      }
    }
  }
}
