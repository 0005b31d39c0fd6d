package io.weft.shuffle.fetch;

import static io.weft.support.TestBlocks.expected;
import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static io.weft.support.TestBlocks.write;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.support.Tap;
import io.weft.support.TestBlocks.Sizes;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.LongStream;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Connections break at any byte. Every chunk arrives once and in order, or the read fails clearly.
 */
class BrokenConnectionTest {
  private static final Sizes SIZES =
      (map, partition, chunk) ->
          chunk < 4 ? 1 + (map * 7919 + partition * 104_729 + chunk * 31) % 30_000 : 0;
  private static final int MAPS = 30;

  @TempDir Path folder;

  private TestCluster cluster;
  private ExecutorExchange owner;
  private ExecutorExchange reader;

  @BeforeEach
  void open() throws IOException {
    cluster = new TestCluster(folder).mode(TransportMode.TCP).window(100_000, 300_000);
    owner = cluster.open("owner");
    reader = cluster.open("reader");
    for (long map = 0; map < MAPS; map++) {
      write(owner, new BlockKey(1, map), 3, SIZES);
    }
  }

  @AfterEach
  void close() throws IOException {
    cluster.close();
  }

  @Test
  void oneCutAnywhereIsRepaired() throws Exception {
    SplittableRandom random = new SplittableRandom(5);
    for (int round = 0; round < 25; round++) {
      long cut = 1 + random.nextLong(5_000_000);
      try (Tap tap = new Tap(owner.address()).cutAfter(cut)) {
        cluster.announce(tap.address());
        ExecutorExchange fresh = cluster.open("reader" + round);
        assertThat(readAll(fresh, requests()))
            .as("connection cut after %d bytes of answers", cut)
            .containsExactlyInAnyOrderElementsOf(expected(1, 0, MAPS, 0, 3, SIZES));
        fresh.close();
      }
    }
  }

  /** They share one connection with an open reader, which must get all of its chunks. */
  @Test
  void readersThatEndAnywhereDoNotBlockOthers() throws Exception {
    SplittableRandom random = new SplittableRandom(11);
    for (int round = 0; round < 100; round++) {
      ChunkReader staying = reader.read(requests(), FetchListener.NONE);
      try (ChunkReader leaving = reader.read(requests(), FetchListener.NONE)) {
        for (int chunks = random.nextInt(200); chunks > 0 && leaving.next(); chunks--) {
          assertThat(leaving.length()).isPositive();
        }
      }
      assertThat(readAll(staying))
          .as("round %d", round)
          .containsExactlyInAnyOrderElementsOf(expected(1, 0, MAPS, 0, 3, SIZES));
      staying.close();
    }
    assertThat(reader.statistics().receivingBytes()).isZero();
    assertThat(reader.statistics().get(ExchangeCounter.REQUESTS_FAILED)).isZero();
  }

  /** With authentication, a connection is established only after an answer of the peer. */
  @Test
  void aFailedConnectionAttemptIsRetried() throws Exception {
    cluster.conf(
        new SparkConf(false)
            .set("spark.authenticate", "true")
            .set("spark.authenticate.secret", "right"));
    ExecutorExchange secured = cluster.open("secured");
    write(secured, new BlockKey(2, 0), 3, SIZES);
    ExecutorExchange asking = cluster.open("asking");
    List<BlockRequest> requests = List.of(request("secured", new BlockKey(2, 0), 0, 3, 180_000));
    try (Tap tap = new Tap(secured.address()).cutAfter(0)) {
      cluster.announce(tap.address());
      assertThat(readAll(asking, requests)).hasSize(12);
      assertThat(tap.connections()).isEqualTo(2);
    }
    assertThat(asking.statistics().get(ExchangeCounter.REQUESTS_FAILED)).isEqualTo(1);
  }

  /** The owner's blocks are good. A fetch failure would make Spark compute them again. */
  @Test
  void aReaderWithoutMemoryReportsNoFetchFailure() throws Exception {
    cluster.memory(TestCluster.SEGMENT_BYTES, 0);
    ExecutorExchange poor = cluster.open("poor");
    write(poor, new BlockKey(3, 0), 1, (map, partition, chunk) -> chunk == 0 ? 1_040_000 : 0);
    assertThatThrownBy(() -> readAll(poor, requests()))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageContaining("no memory to receive blocks of executor owner")
        .hasMessageContaining("memoryBytes");
    poor.removeShuffle(3);
    TestCluster.assertNothingHeld(poor);
    assertThat(readAll(poor, requests())).hasSize(MAPS * 12);
  }

  /** The retry needs memory while the chunks that have arrived still hold theirs. */
  @Test
  void aRetryWithoutMemoryReportsNoFetchFailure() throws Exception {
    cluster.memory(TestCluster.SEGMENT_BYTES, 0);
    try (Tap tap = new Tap(owner.address()).cutAfter(40_000)) {
      cluster.announce(tap.address());
      ExecutorExchange poor = cluster.open("poor");
      write(poor, new BlockKey(3, 0), 1, (map, partition, chunk) -> chunk == 0 ? 930_000 : 0);
      assertThatThrownBy(() -> readAll(poor, requests()))
          .isInstanceOf(UncheckedIOException.class)
          .hasMessageContaining("no memory to receive blocks of executor owner");
      poor.removeShuffle(3);
      TestCluster.assertNothingHeld(poor);
      assertThat(readAll(poor, requests())).hasSize(MAPS * 12);
    }
  }

  @Test
  void twoCutsInOneAnswerAreAFailure() throws Exception {
    try (Tap tap = new Tap(owner.address()).cutAfter(60_000, 10)) {
      cluster.announce(tap.address());
      assertThatThrownBy(() -> readAll(reader, requests()))
          .isInstanceOf(BlockFetchException.class)
          .hasMessageContaining("executor reader cannot read shuffle 1 map");
      TestCluster.assertNothingHeld(reader);
    }
  }

  @Test
  void aConnectionThatBrokeBetweenReadsIsReplaced() throws Exception {
    try (Tap tap = new Tap(owner.address())) {
      cluster.announce(tap.address());
      assertThat(readAll(reader, requests())).hasSize(MAPS * 12);
    }
    try (Tap tap = new Tap(owner.address())) {
      cluster.announce(tap.address());
      // The reader still has the old address. It detects that and looks up the new one.
      assertThatThrownBy(() -> readAll(reader, requests())).isInstanceOf(BlockFetchException.class);
      assertThat(readAll(reader, requests())).hasSize(MAPS * 12);
    }
    assertThat(reader.statistics().get(ExchangeCounter.REQUESTS_FAILED)).isPositive();
  }

  private static List<BlockRequest> requests() {
    return LongStream.range(0, MAPS)
        .mapToObj(map -> request("owner", new BlockKey(1, map), 0, 3, 180_000))
        .toList();
  }
}
