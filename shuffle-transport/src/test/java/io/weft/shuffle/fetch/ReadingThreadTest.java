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
import java.lang.ref.WeakReference;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * One thread reads and another one closes the reader, as a task's end does. Freed memory is
 * overwritten in tests ({@code weft.memory.poison}), so a read of it is noticed.
 */
class ReadingThreadTest {
  private static final int CHUNKS = 20;
  private static final long CHUNK_BYTES = 10_000;
  private static final BlockKey KEY = new BlockKey(1, 0);

  @TempDir Path folder;

  private final ExecutorService feeder = Executors.newSingleThreadExecutor();
  private TestCluster cluster;
  private ExecutorExchange exchange;
  private List<BlockRequest> requests;

  @BeforeEach
  void open() throws IOException {
    assertThat(Boolean.getBoolean("weft.memory.poison")).as("set by the build").isTrue();
    cluster = new TestCluster(folder).mode(TransportMode.TCP).window(30_000, 60_000);
    TestBlocks.write(
        cluster.open("owner"), KEY, 1, (map, partition, chunk) -> chunk < CHUNKS ? CHUNK_BYTES : 0);
    requests = List.of(request("owner", KEY, 0, 1, CHUNKS * CHUNK_BYTES));
    exchange = cluster.open("reader");
  }

  @AfterEach
  void close() throws IOException {
    feeder.shutdownNow();
    cluster.close();
  }

  private <T> T onFeeder(Callable<T> work) throws Exception {
    Future<T> done = feeder.submit(work);
    return done.get(60, TimeUnit.SECONDS);
  }

  private long received() {
    return exchange.statistics().arena().usedBytes();
  }

  @Test
  void theMemoryStaysUntilTheReadingThreadNotices() throws Exception {
    ChunkReader reader = exchange.read(requests, FetchListener.NONE);
    assertThat(onFeeder(reader::next)).isTrue();
    reader.close();
    reader.close();
    assertThat(exchange.statistics().openReaders()).isEqualTo(1);
    TestBlocks.assertContents(reader.address(), reader.length(), KEY, 0, 0);
    assertThatThrownBy(() -> onFeeder(reader::next))
        .hasRootCauseInstanceOf(IllegalStateException.class)
        .hasMessageContaining("the reader is closed");
    TestCluster.assertNothingHeld(exchange);
  }

  @Test
  void theMemoryIsFreedWhenTheReadingThreadHasEnded() throws Exception {
    ChunkReader reader = exchange.read(requests, FetchListener.NONE);
    assertThat(onFeeder(reader::next)).isTrue();
    reader.close();
    assertThat(received()).isPositive();
    feeder.shutdown();
    assertThat(feeder.awaitTermination(60, TimeUnit.SECONDS)).isTrue();
    await()
        .atMost(Duration.ofSeconds(60))
        .untilAsserted(() -> assertThat(exchange.statistics().openReaders()).isZero());
    TestCluster.assertNothingHeld(exchange);
  }

  @Test
  void aClosedReaderCannotBeUsedByAnyThread() throws Exception {
    ChunkReader reader = exchange.read(requests, FetchListener.NONE);
    assertThat(reader.next()).isTrue();
    reader.close();
    assertThat(exchange.statistics().openReaders()).isZero();
    assertThatThrownBy(reader::use).hasMessageContaining("the reader is closed");
    assertThatThrownBy(reader::next).hasMessageContaining("the reader is closed");
    assertThatThrownBy(() -> onFeeder(reader::next)).hasMessageContaining("the reader is closed");
  }

  @Test
  void aThreadThatTakesOverIsTheOneThatCounts() throws Exception {
    ChunkReader reader = exchange.read(requests, FetchListener.NONE);
    assertThat(onFeeder(reader::next)).isTrue();
    assertThat(reader.next()).isTrue();
    reader.close();
    assertThat(exchange.statistics().openReaders()).isZero();
  }

  @Test
  void attachedMemoryIsFreedOnceWithTheChunks() throws Exception {
    int[] freed = new int[1];
    ChunkReader reader = exchange.read(requests, FetchListener.NONE);
    reader.attach(() -> freed[0]++);
    assertThat(onFeeder(reader::next)).isTrue();
    reader.close();
    assertThat(freed[0]).isZero();
    assertThatThrownBy(() -> onFeeder(reader::next)).hasMessageContaining("the reader is closed");
    reader.close();
    assertThat(freed[0]).isEqualTo(1);
  }

  /** A task's listener refers to each of its readers until the task ends. */
  @Test
  void aClosedReaderKeepsNoBlocks() throws Exception {
    BlockRequest kept = request("owner", KEY, 0, 1, 1);
    WeakReference<BlockRequest> left = new WeakReference<>(kept);
    ChunkReader reader = exchange.read(List.of(kept), FetchListener.NONE);
    kept = null;
    while (reader.next()) {
      assertThat(reader.request()).isNotNull();
    }
    reader.close();
    await()
        .atMost(Duration.ofSeconds(60))
        .until(
            () -> {
              System.gc();
              return left.get() == null;
            });
    assertThatThrownBy(reader::use).hasMessageContaining("the reader is closed");
  }

  /** The close falls anywhere into the reads of another thread, in 1,000 rounds. */
  @Test
  void noThreadEverReadsFreedMemory() throws Exception {
    for (int round = 0; round < 1000; round++) {
      ChunkReader reader = exchange.read(requests, FetchListener.NONE);
      int closeAfter = round % CHUNKS;
      AtomicInteger seen = new AtomicInteger();
      Future<?> read = feeder.submit(() -> readUntilClosed(reader, seen));
      while (seen.get() < closeAfter && !read.isDone()) {
        Thread.onSpinWait();
      }
      reader.close();
      read.get(60, TimeUnit.SECONDS);
    }
    TestCluster.assertNothingHeld(exchange);
  }

  private static Void readUntilClosed(ChunkReader reader, AtomicInteger seen)
      throws BlockFetchException {
    try {
      while (reader.next()) {
        TestBlocks.assertContents(reader.address(), reader.length(), KEY, 0, seen.get());
        seen.incrementAndGet();
      }
      assertThat(seen).hasValue(CHUNKS);
      reader.close();
    } catch (IllegalStateException e) {
      assertThat(e).hasMessageContaining("the reader is closed");
    }
    return null;
  }
}
