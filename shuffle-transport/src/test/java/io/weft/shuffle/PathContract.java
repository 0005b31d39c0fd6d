package io.weft.shuffle;

import static io.weft.support.TestBlocks.expected;
import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static io.weft.support.TestBlocks.write;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.memory.Extent;
import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.MapOutputWriter;
import io.weft.support.TestBlocks;
import io.weft.support.TestBlocks.Seen;
import io.weft.support.TestBlocks.Sizes;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The contract of every path from a map task to a reduce task. */
abstract class PathContract {
  private static final Sizes FEW =
      (map, partition, chunk) -> chunk < 2 ? 40 * (map + 1) + partition : 0;

  @TempDir Path folder;

  TestCluster cluster;
  ExecutorExchange owner;
  ExecutorExchange reader;

  abstract TransportMode mode();

  /** Changes the settings of all executors. */
  TestCluster prepare(TestCluster plain) {
    return plain;
  }

  /** Whether the reader is the owner. */
  boolean own() {
    return false;
  }

  @BeforeEach
  void open() throws IOException {
    cluster = prepare(new TestCluster(folder).mode(mode()));
    owner = cluster.open("owner");
    reader = own() ? owner : cluster.open("reader");
  }

  @AfterEach
  void close() throws IOException {
    cluster.close();
  }

  @Test
  void bringsEveryChunkOfTheRange() throws IOException {
    for (long map = 0; map < 10; map++) {
      write(owner, new BlockKey(1, map), 8, FEW);
    }
    List<Seen> seen = readAll(reader, requests(10, 2, 6, 200));
    assertThat(seen).containsExactlyInAnyOrderElementsOf(expected(1, 0, 10, 2, 6, FEW));
  }

  @Test
  void emptyPartitionsAndEmptyRequestsBringNoChunks() throws IOException {
    write(
        owner,
        new BlockKey(1, 0),
        5,
        (map, partition, chunk) -> partition == 3 && chunk == 0 ? 8 : 0);
    write(owner, new BlockKey(1, 1), 5, (map, partition, chunk) -> 0);
    write(owner, new BlockKey(1, 2), 0, (map, partition, chunk) -> 0);
    assertThat(readAll(reader, List.of())).isEmpty();
    assertThat(readAll(reader, requests(2, 0, 3, 0))).isEmpty();
    assertThat(readAll(reader, requests(2, 2, 2, 0))).isEmpty();
    assertThat(readAll(reader, requests(2, 0, 5, 0))).hasSize(1);
    assertThat(readAll(reader, List.of(request("owner", new BlockKey(1, 2), 0, 0, 0)))).isEmpty();
  }

  @Test
  void fiveThousandPartitions() throws IOException {
    Sizes sizes =
        (map, partition, chunk) -> partition % 3 == 0 && chunk == 0 ? 8 + partition % 64 : 0;
    write(owner, new BlockKey(1, 0), 5000, sizes);
    List<Seen> seen = readAll(reader, requests(1, 0, 5000, 60_000));
    assertThat(seen).containsExactlyElementsOf(expected(1, 0, 1, 0, 5000, sizes));
  }

  @Test
  void aChunkLargerThanASegmentAndThanTheWindow() throws IOException {
    Sizes sizes =
        (map, partition, chunk) ->
            chunk == 0 ? (partition == 1 ? 3 * TestCluster.SEGMENT_BYTES + 8 : 24) : 0;
    write(owner, new BlockKey(1, 0), 3, sizes);
    List<Seen> seen = readAll(reader, requests(1, 0, 3, 10));
    assertThat(seen).containsExactlyElementsOf(expected(1, 0, 1, 0, 3, sizes));
  }

  @Test
  void sizesThatTheMapStatusGotWrong() throws IOException {
    Sizes sizes = (map, partition, chunk) -> chunk < 6 ? 70_000 : 0;
    write(owner, new BlockKey(1, 0), 4, sizes);
    for (long estimate : new long[] {0, 1, 100_000, 100_000_000}) {
      assertThat(readAll(reader, requests(1, 0, 4, estimate)))
          .containsExactlyElementsOf(expected(1, 0, 1, 0, 4, sizes));
    }
  }

  @Test
  void manySmallBlocksOfManyMaps() throws IOException {
    Sizes sizes = (map, partition, chunk) -> chunk == 0 ? 8 * (1 + (map + partition) % 50) : 0;
    for (long map = 0; map < 200; map++) {
      write(owner, new BlockKey(1, map), 200, sizes);
    }
    for (int partition = 0; partition < 200; partition += 40) {
      assertThat(readAll(reader, requests(200, partition, partition + 1, 300)))
          .containsExactlyInAnyOrderElementsOf(
              expected(1, 0, 200, partition, partition + 1, sizes));
    }
  }

  @Test
  void aChunkStaysReadableUntilTheSecondNextAfterIt() throws IOException {
    Sizes sizes = (map, partition, chunk) -> chunk < 3 ? 90_000 : 0;
    for (long map = 0; map < 20; map++) {
      write(owner, new BlockKey(1, map), 1, sizes);
    }
    try (ChunkReader chunks = reader.read(requests(20, 0, 1, 270_000), FetchListener.NONE)) {
      long before = 0;
      BlockKey key = null;
      int chunk = 0;
      while (chunks.next()) {
        if (key != null) {
          TestBlocks.assertContents(before, 90_000, key, 0, chunk);
        }
        before = chunks.address();
        key = chunks.request().key();
        chunk = chunks.rows() - 1;
      }
      TestBlocks.assertContents(before, 90_000, key, 0, chunk);
    }
  }

  @Test
  void aMissingOutputIsAnErrorThatNamesIt() throws IOException {
    write(owner, new BlockKey(1, 0), 2, FEW);
    BlockRequest missing = request("owner", new BlockKey(1, 77), 0, 2, 10);
    List<BlockRequest> requests = List.of(request("owner", new BlockKey(1, 0), 0, 2, 10), missing);
    assertThatThrownBy(() -> readAll(reader, requests))
        .isInstanceOfSatisfying(
            BlockFetchException.class,
            e -> {
              assertThat(e.request()).isEqualTo(missing);
              assertThat(e.partition()).isZero();
            })
        .hasMessageContaining(
            "executor " + reader.address().executorId() + " cannot read shuffle 1 map 77")
        .hasMessageContaining("executor owner");
  }

  @Test
  void moreBlocksAfterAFailureAreReadable() throws IOException {
    write(owner, new BlockKey(1, 0), 2, FEW);
    assertThatThrownBy(
            () -> readAll(reader, List.of(request("owner", new BlockKey(1, 5), 0, 2, 9))))
        .isInstanceOf(BlockFetchException.class);
    assertThat(readAll(reader, requests(1, 0, 2, 10))).hasSize(4);
  }

  @Test
  void missingPartitionsAreAnError() throws IOException {
    write(owner, new BlockKey(1, 0), 2, FEW);
    assertThatThrownBy(() -> readAll(reader, requests(1, 0, 3, 10)))
        .isInstanceOf(BlockFetchException.class)
        .hasMessageContaining("has 2 partitions");
  }

  @Test
  void anUnpublishedOutputIsInvisibleAndFreed() throws IOException {
    try (MapOutputWriter writer = owner.newMapOutput(new BlockKey(1, 0), 1)) {
      Extent extent = writer.allocate(100);
      writer.commit(0, extent, 100, 1);
      writer.allocate(100);
      assertThatThrownBy(() -> readAll(reader, requests(1, 0, 1, 10)))
          .isInstanceOf(BlockFetchException.class);
    }
    assertThat(owner.statistics().arena().usedBytes()).isZero();
  }

  @Test
  void aRemovedShuffleIsGoneForNewReadersAndStaysForOpenOnes() throws IOException {
    Sizes sizes = (map, partition, chunk) -> chunk < 4 ? 50_000 : 0;
    write(owner, new BlockKey(1, 0), 1, sizes);
    try (ChunkReader chunks = reader.read(requests(1, 0, 1, 200_000), FetchListener.NONE)) {
      assertThat(chunks.next()).isTrue();
      owner.removeShuffle(1);
      reader.removeShuffle(1);
      // A new output must not use the memory that is being read.
      write(owner, new BlockKey(2, 0), 1, sizes);
      TestBlocks.assertContents(chunks.address(), 50_000, new BlockKey(1, 0), 0, 0);
      for (int chunk = 1; chunk < 4; chunk++) {
        assertThat(chunks.next()).isTrue();
        TestBlocks.assertContents(chunks.address(), 50_000, new BlockKey(1, 0), 0, chunk);
      }
      assertThat(chunks.next()).isFalse();
    }
    assertThatThrownBy(() -> readAll(reader, requests(1, 0, 1, 10)))
        .isInstanceOf(BlockFetchException.class);
    reader.removeShuffle(1);
    owner.removeShuffle(1);
    cluster.removeShuffle(2);
    TestCluster.assertNothingHeld(owner);
  }

  @Test
  void aShuffleThatIsRunAgainAfterItsRemovalIsReadAnew() throws IOException {
    write(owner, new BlockKey(1, 0), 2, FEW);
    assertThat(readAll(reader, requests(1, 0, 2, 10))).hasSize(4);
    cluster.removeShuffle(1);
    Sizes other = (map, partition, chunk) -> chunk == 0 ? 999 : 0;
    write(owner, new BlockKey(1, 0), 2, other);
    assertThat(readAll(reader, requests(1, 0, 2, 10)))
        .containsExactlyElementsOf(expected(1, 0, 1, 0, 2, other));
  }

  @Test
  void closingAReaderInTheMiddleFreesEverything() throws IOException {
    Sizes sizes = (map, partition, chunk) -> chunk < 10 ? 60_000 : 0;
    for (long map = 0; map < 10; map++) {
      write(owner, new BlockKey(1, map), 1, sizes);
    }
    long published = owner.statistics().arena().usedBytes();
    for (int read = 0; read < 12; read++) {
      try (ChunkReader chunks = reader.read(requests(10, 0, 1, 600_000), FetchListener.NONE)) {
        for (int i = 0; i < read; i++) {
          assertThat(chunks.next()).isTrue();
        }
      }
    }
    org.awaitility.Awaitility.await()
        .untilAsserted(
            () -> {
              assertThat(owner.statistics().openStreams()).isZero();
              assertThat(owner.statistics().arena().usedBytes()).isEqualTo(published);
              assertThat(reader.statistics().arena().usedBytes()).isEqualTo(own() ? published : 0);
            });
  }

  List<BlockRequest> requests(int maps, int start, int end, long bytes) {
    List<BlockRequest> requests = new ArrayList<>();
    for (long map = 0; map < maps; map++) {
      requests.add(request("owner", new BlockKey(1, map), start, end, bytes));
    }
    return requests;
  }
}
