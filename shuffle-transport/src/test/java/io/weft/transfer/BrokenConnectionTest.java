package io.weft.transfer;

import static io.weft.support.TestBlocks.expected;
import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static io.weft.support.TestBlocks.write;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.catalog.BlockKey;
import io.weft.exchange.ExecutorExchange;
import io.weft.metrics.ExchangeCounter;
import io.weft.peer.TransportMode;
import io.weft.support.Tap;
import io.weft.support.TestBlocks.Sizes;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Connections that break at any byte: every chunk once, in order, or a clear failure. */
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
  void oneCutAnywhereIsMadeUpFor() throws Exception {
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
      // The reader still knows the old address, which is dead; it finds out and asks again.
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
