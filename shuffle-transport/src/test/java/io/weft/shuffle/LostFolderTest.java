package io.weft.shuffle;

import static io.weft.support.TestBlocks.expected;
import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static io.weft.support.TestBlocks.write;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.support.Deletion;
import io.weft.support.TestBlocks;
import io.weft.support.TestBlocks.Sizes;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Another program deletes the folder of an executor that runs. */
class LostFolderTest {
  private static final Sizes SIZES = (map, partition, chunk) -> chunk < 2 ? 50_000 : 0;

  @TempDir Path folder;

  private TestCluster cluster;
  private ExecutorExchange owner;
  private ExecutorExchange reader;

  @BeforeEach
  void open() throws IOException {
    cluster = new TestCluster(folder);
    owner = cluster.open("owner");
    reader = cluster.open("reader");
  }

  @AfterEach
  void close() throws IOException {
    cluster.close();
  }

  private Path ownersFolder() {
    return Path.of(owner.address().folder());
  }

  /** Deletes an executor's folder and waits until it is back. */
  private static void loseFolder(ExecutorExchange executor) {
    Path lost = Path.of(executor.address().folder());
    Deletion.delete(lost);
    await("a new folder")
        .atMost(Duration.ofSeconds(30))
        .until(() -> Files.exists(lost.resolve("alive")));
    assertThat(lost.resolve("token")).hasContent(executor.address().token());
  }

  private static List<BlockRequest> requests(int shuffle, int maps) {
    List<BlockRequest> requests = new ArrayList<>();
    for (long map = 0; map < maps; map++) {
      requests.add(request("owner", new BlockKey(shuffle, map), 0, 3, 300_000));
    }
    return requests;
  }

  private void assertReads(ExecutorExchange by, int shuffle, int maps) throws IOException {
    assertThat(readAll(by, requests(shuffle, maps)))
        .containsExactlyInAnyOrderElementsOf(expected(shuffle, 0, maps, 0, 3, SIZES));
  }

  private long blocks(ExchangeCounter counter) {
    return reader.statistics().get(counter);
  }

  @Test
  void earlierBlocksComeOverTheNetworkAndLaterOnesInPlace() throws IOException {
    write(owner, new BlockKey(1, 0), 3, SIZES);
    assertReads(reader, 1, 1);
    assertThat(blocks(ExchangeCounter.SAME_HOST_BLOCKS)).isEqualTo(3);
    loseFolder(owner);
    write(owner, new BlockKey(1, 1), 3, SIZES);
    assertReads(reader, 1, 2);
    assertThat(blocks(ExchangeCounter.REMOTE_BLOCKS)).isEqualTo(3);
    assertThat(blocks(ExchangeCounter.SAME_HOST_BLOCKS)).isEqualTo(6);
    assertThat(blocks(ExchangeCounter.LEASES_TAKEN)).as("the first lease was deleted").isEqualTo(2);
    assertReads(owner, 1, 2);
  }

  @Test
  void nothingFailsWhileTheFolderIsAway() throws IOException {
    write(owner, new BlockKey(1, 0), 3, SIZES);
    for (int map = 1; map < 30; map++) {
      Deletion.delete(ownersFolder());
      write(owner, new BlockKey(1, map), 3, SIZES);
      Deletion.delete(ownersFolder());
      assertReads(reader, 1, map + 1);
    }
  }

  /**
   * A reader's lease is deleted with the folder, so memory that it has mapped is not used again.
   */
  @Test
  void whatAReaderHasMappedStaysAsItWas() throws IOException {
    write(owner, new BlockKey(1, 0), 3, SIZES);
    try (ChunkReader chunks = reader.read(requests(1, 1), FetchListener.NONE)) {
      assertThat(chunks.next()).isTrue();
      loseFolder(owner);
      cluster.removeShuffle(1);
      await("the owner's memory")
          .atMost(Duration.ofSeconds(30))
          .until(() -> owner.statistics().arena().usedBytes() == 0);
      for (long map = 0; map < 10; map++) {
        write(owner, new BlockKey(2, map), 3, SIZES);
      }
      TestBlocks.assertContents(
          chunks.address(), chunks.length(), new BlockKey(1, 0), chunks.partition(), 0);
      assertReads(reader, 2, 10);
      TestBlocks.assertContents(
          chunks.address(), chunks.length(), new BlockKey(1, 0), chunks.partition(), 0);
    }
  }

  @Test
  void withoutTheNetworkTheErrorNamesBothAndTheNextOutputIsRead() throws IOException {
    cluster.mode(TransportMode.SHM);
    ExecutorExchange strict = cluster.open("strict");
    write(owner, new BlockKey(1, 0), 3, SIZES);
    assertReads(strict, 1, 1);
    loseFolder(owner);
    assertThatThrownBy(() -> readAll(strict, requests(1, 1)))
        .isInstanceOf(BlockFetchException.class)
        .hasMessageContaining("executor strict cannot read shuffle 1 map 0")
        .hasMessageContaining("owner")
        .hasMessageContaining(ownersFolder().toString());
    owner.removeMapOutput(new BlockKey(1, 0));
    write(owner, new BlockKey(1, 0), 3, SIZES);
    assertReads(strict, 1, 1);
  }

  @Test
  void aFolderWithoutItsTokenIsMadeAnew() throws IOException {
    write(owner, new BlockKey(1, 0), 3, SIZES);
    assertReads(reader, 1, 1);
    Files.delete(ownersFolder().resolve("token"));
    await("a new token")
        .atMost(Duration.ofSeconds(30))
        .until(() -> Files.exists(ownersFolder().resolve("token")));
    assertReads(reader, 1, 1);
  }

  /** The budget counts memory of the lost folder until it is free; then disk takes the rest. */
  @Test
  void blocksGoToDiskWhileLostMemoryIsInUse() throws IOException {
    cluster.memory(TestCluster.SEGMENT_BYTES, 64 << 20);
    ExecutorExchange small = cluster.open("small");
    write(small, new BlockKey(1, 0), 3, SIZES);
    loseFolder(small);
    write(small, new BlockKey(1, 1), 3, SIZES);
    write(small, new BlockKey(1, 2), 3, SIZES);
    assertThat(small.statistics().get(ExchangeCounter.BYTES_SPILLED)).isPositive();
    List<BlockRequest> all = new ArrayList<>();
    for (long map = 0; map < 3; map++) {
      all.add(request("small", new BlockKey(1, map), 0, 3, 300_000));
    }
    assertThat(readAll(reader, all))
        .containsExactlyInAnyOrderElementsOf(expected(1, 0, 3, 0, 3, SIZES));
  }
}
