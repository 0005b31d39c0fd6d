package io.weft.shuffle;

import static io.weft.support.TestBlocks.expected;
import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static io.weft.support.TestBlocks.write;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.memory.Extent;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.ExchangeCounters;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.HostPeers;
import io.weft.support.TestBlocks;
import io.weft.support.TestBlocks.Sizes;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Executors without data hold no memory, and readers keep none of it alive. */
class IdleMemoryTest {
  private static final Sizes SIZES = (map, partition, chunk) -> chunk == 0 ? 300_000 : 0;
  private static final int MAPS = 10;

  /** Owners, tokens and what a file system needs. */
  private static final long CLOSE_TO_NOTHING = 4096;

  @TempDir Path folder;

  private TestCluster cluster;
  private ExecutorExchange owner;
  private ExecutorExchange reader;

  @BeforeEach
  void open() throws IOException {
    cluster = new TestCluster(folder).idle(Duration.ofMillis(1));
    owner = cluster.open("owner");
    reader = cluster.open("reader");
  }

  @AfterEach
  void close() throws IOException {
    cluster.close();
  }

  private static List<BlockRequest> requests(int shuffle) {
    List<BlockRequest> requests = new ArrayList<>();
    for (long map = 0; map < MAPS; map++) {
      requests.add(request("owner", new BlockKey(shuffle, map), 0, 3, 900_000));
    }
    return requests;
  }

  private void shuffle(int id) throws IOException {
    for (long map = 0; map < MAPS; map++) {
      write(owner, new BlockKey(id, map), 3, SIZES);
    }
    assertThat(readAll(reader, requests(id)))
        .containsExactlyInAnyOrderElementsOf(expected(id, 0, MAPS, 0, 3, SIZES));
  }

  private long bytes() {
    try (Stream<Path> files = Files.walk(cluster.root())) {
      return files.filter(Files::isRegularFile).mapToLong(file -> file.toFile().length()).sum();
    } catch (IOException | java.io.UncheckedIOException e) {
      return Long.MAX_VALUE;
    }
  }

  private long mappedSegments() throws IOException {
    try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
      return maps.filter(line -> line.contains(cluster.root() + "/")).count();
    }
  }

  @Test
  void memoryOfRemovedShufflesReturnsToTheSystem() throws IOException {
    for (int id = 1; id <= 2; id++) {
      shuffle(id);
      assertThat(bytes()).isGreaterThan(8_000_000);
      assertThat(reader.statistics().mappedPeerSegments()).isPositive();
      cluster.removeShuffle(id);
      await("memory that is given back")
          .atMost(Duration.ofSeconds(30))
          .untilAsserted(
              () -> {
                assertThat(bytes()).as("bytes of files").isLessThan(CLOSE_TO_NOTHING);
                assertThat(mappedSegments()).as("mappings, also of deleted files").isZero();
                assertThat(owner.statistics().arena().memory().reservedBytes()).isZero();
                assertThat(reader.statistics().mappedPeerSegments()).isZero();
              });
    }
  }

  /** Its outputs may be of shuffles that ended; Spark finds them when the driver collects. */
  @Test
  void anIdleExecutorWithOutputsIsReportedWithGrowingPauses() throws IOException {
    AtomicLong clock = new AtomicLong();
    ExchangeCounters counters = new ExchangeCounters();
    AtomicInteger readers = new AtomicInteger();
    AtomicInteger reports = new AtomicInteger();
    SharedArena arena = owner.arena();
    HostPeers peers = new HostPeers("owner", "0123abcd", counters);
    Duration second = Duration.ofSeconds(1);
    IdleMemory idle = new IdleMemory(second, arena, peers, counters, readers::get, clock::get);
    idle.onIdle(reports::incrementAndGet);
    idle.giveBack();
    clock.addAndGet(second.toNanos());
    idle.giveBack();
    assertThat(reports).as("nothing is in use").hasValue(0);
    Extent output = arena.allocate(64, Use.RETAINED);
    readers.set(1);
    for (int i = 0; i < 3; i++) {
      idle.giveBack();
      clock.addAndGet(second.toNanos());
    }
    assertThat(reports).as("it reads").hasValue(0);
    readers.set(0);
    for (int i = 0; i < 100; i++) {
      idle.giveBack();
      clock.addAndGet(second.toNanos());
    }
    assertThat(reports).as("after 0, 2, 6, 14, 30, 46, 62, 78 and 94 s").hasValue(9);
    counters.increment(ExchangeCounter.OUTPUTS_PUBLISHED);
    idle.giveBack();
    assertThat(reports).as("it works again").hasValue(9);
    clock.addAndGet(second.toNanos());
    idle.giveBack();
    assertThat(reports).hasValue(10);
    arena.free(output);
  }

  /** The lease keeps what a reader uses, however short the idle time is. */
  @Test
  void whatAReaderUsesStays() throws IOException {
    shuffle(1);
    try (ChunkReader chunks = reader.read(requests(1), FetchListener.NONE)) {
      assertThat(chunks.next()).isTrue();
      BlockKey key = chunks.request().key();
      cluster.removeShuffle(1);
      shuffle(2);
      cluster.removeShuffle(2);
      await("memory of the second shuffle that is given back")
          .atMost(Duration.ofSeconds(30))
          .until(() -> owner.statistics().arena().memory().segments() <= MAPS);
      TestBlocks.assertContents(chunks.address(), chunks.length(), key, chunks.partition(), 0);
      assertThat(owner.statistics().retiredBytes()).isPositive();
    }
  }
}
