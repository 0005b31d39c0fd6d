package io.weft.shuffle.net;

import static io.weft.support.TestBlocks.expected;
import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.memory.ArenaOptions;
import io.weft.memory.SettingNames;
import io.weft.memory.SharedArena;
import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.BlockReaders;
import io.weft.shuffle.fetch.BlockReaders.FetchLimits;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.net.BlockServer.BlockRequests;
import io.weft.shuffle.net.RequestAnswerer.ServedBudget;
import io.weft.shuffle.peer.ExchangeCounters;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.PeerAddress.KnownPeers;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockCatalog;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.HostPeers;
import io.weft.support.TestBlocks;
import io.weft.support.TestBlocks.Sizes;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;

/**
 * An owner with blocks and a reader, each with its own memory. In each round the reader reads all
 * blocks over a faulty network. For one thread.
 */
final class FaultyWorld implements AutoCloseable, FaultyNetwork.Server {
  private static final int SEGMENT_BYTES = 256 << 10;
  private static final int MAPS = 10;
  private static final int PARTITIONS = 3;
  private static final Duration TIMEOUT = Duration.ofMillis(200);

  /** The timeout of rounds without faults, which must not fail on a slow machine. */
  private static final Duration NO_FAULT_TIMEOUT = Duration.ofSeconds(60);

  /** A size for which memory is lent. */
  private static final int LARGE = 70_001;

  /** Sizes from one byte to more than a piece of the stream, and a large one. */
  private static final Sizes SIZES =
      (map, partition, chunk) -> {
        if (map == MAPS - 1 && partition == 0 && chunk == 0) {
          return LARGE;
        }
        return chunk < (map + partition) % 4
            ? 1 + (map * 7919 + partition * 613 + chunk * 31) % 6000
            : 0;
      };

  private final SharedArena ownerMemory;
  private final SharedArena readerMemory;
  private final BlockCatalog owned;
  private final BlockCatalog readers;
  private final ServedStreams streams = new ServedStreams(4096);
  private final ServedBudget budget = new ServedBudget(64 << 10, 32 << 10);
  private final BlockRequests requests;

  FaultyWorld(Path folder) throws IOException {
    ownerMemory = memory(folder.resolve("owner"));
    readerMemory = memory(folder.resolve("reader"));
    owned = catalog(folder.resolve("owner"), ownerMemory);
    readers = catalog(folder.resolve("reader"), readerMemory);
    requests =
        new BlockRequests(
            new RequestAnswerer(
                "owner",
                "cafe0123",
                owned,
                new BlockCompressor(ownerMemory),
                budget,
                streams,
                new ExchangeCounters(),
                SettingNames.OWN),
            streams,
            1);
    for (long map = 0; map < MAPS; map++) {
      BlockKey key = new BlockKey(1, map);
      TestBlocks.write(owned.newMapOutput(key, PARTITIONS), key, PARTITIONS, SIZES);
    }
  }

  private static SharedArena memory(Path folder) throws IOException {
    Files.createDirectories(folder);
    return SharedArena.open(
        new ArenaOptions(folder, List.of(), SEGMENT_BYTES, 4 * SEGMENT_BYTES, 0, 0));
  }

  private static BlockCatalog catalog(Path folder, SharedArena memory) {
    return new BlockCatalog(
        folder,
        List.of(),
        memory,
        SEGMENT_BYTES,
        true,
        Optional.empty(),
        shuffle -> false,
        new ExchangeCounters());
  }

  @Override
  public BlockRequests requests() {
    return requests;
  }

  /** The result of a round. */
  record Outcome(boolean delivered, int faults) {}

  /** Reads all blocks once. Fails the test on any result that is not allowed. */
  Outcome round(long seed) throws InterruptedException {
    SplittableRandom random = new SplittableRandom(seed);
    double rate = random.nextInt(4) == 0 ? 0 : random.nextDouble() * random.nextDouble() * 0.05;
    long ownerBytes = ownerMemory.statistics().usedBytes();
    FaultyNetwork network = new FaultyNetwork(this, random.nextLong(), rate);
    boolean delivered = false;
    try {
      delivered = read(network, limits(random, rate == 0 ? NO_FAULT_TIMEOUT : TIMEOUT));
    } finally {
      network.close();
    }
    if (rate == 0) {
      assertThat(delivered).as("delivered without faults").isTrue();
    }
    await("nothing is held")
        .atMost(Duration.ofSeconds(30))
        .untilAsserted(
            () -> {
              assertThat(readerMemory.statistics().usedBytes()).as("reader's bytes").isZero();
              assertThat(streams.open()).as("streams").isZero();
              assertThat(budget.bytes()).as("bytes held for peers").isZero();
              assertThat(ownerMemory.statistics().usedBytes())
                  .as("owner's bytes")
                  .isEqualTo(ownerBytes);
            });
    return new Outcome(delivered, network.faults());
  }

  private static FetchLimits limits(SplittableRandom random, Duration timeout) {
    long request = 4096 << random.nextInt(4);
    Compression.Rule compression =
        random.nextBoolean() ? Compression.Rule.NONE : Compression.Rule.values()[random.nextInt(4)];
    return new FetchLimits(
        request, 3 * request, 2 * request, 4 * request, true, compression, timeout);
  }

  private boolean read(FaultyNetwork network, FetchLimits limits) {
    BlockReaders fetching =
        new BlockReaders(
            "reader",
            TransportMode.TCP,
            readers,
            new HostPeers("reader", "beef4567", new ExchangeCounters()),
            new KnownPeers(
                executors ->
                    Map.of(
                        "owner",
                        new PeerAddress(
                            "owner",
                            "cafe0123",
                            "nowhere",
                            1,
                            "/nowhere",
                            "",
                            "elsewhere",
                            "test"))),
            network,
            readerMemory,
            limits,
            Optional.empty(),
            Optional.empty(),
            new ExchangeCounters());
    try (ChunkReader reader = fetching.read(all(), FetchListener.NONE)) {
      assertThat(readAll(reader))
          .containsExactlyInAnyOrderElementsOf(expected(1, 0, MAPS, 0, PARTITIONS, SIZES));
      return true;
    } catch (BlockFetchException e) {
      assertThat(e).hasMessageContaining("executor reader cannot read shuffle 1 map");
      return false;
    }
  }

  private static List<BlockRequest> all() {
    List<BlockRequest> requests = new ArrayList<>();
    for (long map = 0; map < MAPS; map++) {
      requests.add(request("owner", new BlockKey(1, map), 0, PARTITIONS, 9000));
    }
    return requests;
  }

  @Override
  public void close() {
    requests.close();
    owned.removeShuffle(1);
    owned.close();
    readers.close();
    ownerMemory.close();
    readerMemory.close();
  }
}
