package io.weft.shuffle;

import static io.weft.support.TestBlocks.expected;
import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.support.ExecutorProcess;
import io.weft.support.TestBlocks;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Executors in separate processes on this host that read each other and are killed. */
class TwoProcessesTest {
  @TempDir Path folder;

  private TestCluster cluster;
  private ExecutorProcess other;

  @BeforeEach
  void start() throws IOException {
    cluster = new TestCluster(folder);
    other = new ExecutorProcess(folder, "other", TransportMode.AUTO);
    cluster.announce(other.address());
  }

  @AfterEach
  void stop() throws Exception {
    other.close();
    cluster.close();
  }

  @Test
  void oneReadsTheOtherInPlace() throws IOException {
    ExecutorExchange reader = cluster.mode(TransportMode.SHM).open("reader");
    other.order("write 1 20 4");
    assertThat(readAll(reader, requests(20)))
        .containsExactlyInAnyOrderElementsOf(expected(1, 0, 20, 0, 4, ExecutorProcess::size));
    assertThat(reader.statistics().get(ExchangeCounter.SAME_HOST_BLOCKS)).isEqualTo(80);
    assertThat(reader.statistics().get(ExchangeCounter.REMOTE_BLOCKS)).isZero();
    assertThat(reader.statistics().mappedPeerSegments()).isPositive();
  }

  @Test
  void oneReadsTheOtherOverTheNetwork() throws IOException {
    ExecutorExchange reader = cluster.mode(TransportMode.TCP).open("reader");
    other.order("write 1 20 4");
    assertThat(readAll(reader, requests(20)))
        .containsExactlyInAnyOrderElementsOf(expected(1, 0, 20, 0, 4, ExecutorProcess::size));
    assertThat(reader.statistics().get(ExchangeCounter.SAME_HOST_BLOCKS)).isZero();
    assertThat(reader.statistics().get(ExchangeCounter.REMOTE_BLOCKS)).isEqualTo(80);
  }

  @Test
  void theBlocksOfAKilledExecutorStayReadableOnItsHost() throws Exception {
    ExecutorExchange reader = cluster.mode(TransportMode.AUTO).open("reader");
    other.order("write 1 20 4");
    try (ChunkReader before = reader.read(requests(20), FetchListener.NONE)) {
      assertThat(before.next()).isTrue();
      other.kill();
      for (int chunk = 1; chunk < 20 * 12; chunk++) {
        assertThat(before.next()).isTrue();
        TestBlocks.assertContents(
            before.address(),
            before.length(),
            before.request().key(),
            before.partition(),
            before.rows() - 1);
      }
      assertThat(before.next()).isFalse();
    }
    // A second task of the same executor, after the death.
    assertThat(readAll(reader, requests(20))).hasSize(20 * 12);
  }

  @Test
  void aKilledExecutorIsAFailureOverTheNetwork() throws Exception {
    ExecutorExchange reader = cluster.mode(TransportMode.TCP).open("reader");
    other.order("write 1 20 4");
    assertThat(readAll(reader, requests(20))).hasSize(20 * 12);
    other.kill();
    assertThatThrownBy(() -> readAll(reader, requests(20)))
        .isInstanceOf(BlockFetchException.class)
        .hasMessageContaining("executor reader cannot read shuffle 1 map 0")
        .hasMessageContaining("executor other (localhost:" + other.address().port());
  }

  @Test
  void aStoppedExecutorIsReadInPlaceAndTimesOutOverTheNetwork() throws Exception {
    ExecutorExchange inPlace = cluster.mode(TransportMode.SHM).open("inPlace");
    cluster.mode(TransportMode.TCP).timeout(Duration.ofSeconds(4));
    ExecutorExchange overNetwork = cluster.open("overNetwork");
    other.order("write 1 20 4");
    assertThat(readAll(overNetwork, requests(20))).hasSize(20 * 12);
    other.signal("STOP");
    try {
      assertThat(readAll(inPlace, requests(20))).hasSize(20 * 12);
      long started = System.nanoTime();
      assertThatThrownBy(() -> readAll(overNetwork, requests(20)))
          .isInstanceOf(BlockFetchException.class)
          .hasMessageContaining("within 4000 ms");
      assertThat(Duration.ofNanos(System.nanoTime() - started))
          .as("long before Spark's network timeout")
          .isBetween(Duration.ofSeconds(4), Duration.ofSeconds(34));
    } finally {
      other.signal("CONT");
    }
    assertThat(readAll(overNetwork, requests(20))).hasSize(20 * 12);
  }

  @Test
  void theMemoryThatAKilledReaderHeldIsFreed() throws Exception {
    ExecutorExchange owner = cluster.mode(TransportMode.AUTO).open("owner");
    other.order("peer " + ExecutorProcess.format(owner.address()));
    TestBlocks.write(owner, new BlockKey(1, 0), 2, ExecutorProcess::size);
    other.order("open owner 1");
    owner.removeShuffle(1);
    assertThat(owner.statistics().retiredBytes()).as("the reader has a lease").isPositive();
    assertThat(owner.statistics().arena().usedBytes()).isPositive();
    other.kill();
    TestCluster.assertNothingHeld(owner);
    assertThat(owner.statistics().get(ExchangeCounter.BYTES_RETIRED)).isPositive();
  }

  @Test
  void anotherOwnerThatRemovesAShuffleWaitsForItsReaders() throws Exception {
    ExecutorExchange reader = cluster.mode(TransportMode.SHM).open("reader");
    other.order("write 1 5 2");
    try (ChunkReader chunks = reader.read(requests(5, 0, 2), FetchListener.NONE)) {
      assertThat(chunks.next()).isTrue();
      other.order("remove 1");
      // If the owner reused the memory, this would overwrite blocks that are being read.
      other.order("write 2 5 2");
      TestBlocks.assertContents(
          chunks.address(), chunks.length(), chunks.request().key(), chunks.partition(), 0);
    }
    assertThatThrownBy(
            () -> readAll(reader, List.of(request("other", new BlockKey(1, 9), 0, 1, 9))))
        .isInstanceOf(BlockFetchException.class);
    reader.removeShuffle(1);
    assertThat(leases()).isEmpty();
  }

  private List<Path> leases() throws IOException {
    try (var files = Files.list(Path.of(other.address().folder()))) {
      return files.filter(file -> file.getFileName().toString().startsWith("lease-")).toList();
    }
  }

  private static List<BlockRequest> requests(int maps) {
    return requests(maps, 0, 4);
  }

  private static List<BlockRequest> requests(int maps, int start, int end) {
    return LongStream.range(0, maps)
        .mapToObj(map -> request("other", new BlockKey(1, map), start, end, 1000))
        .toList();
  }
}
