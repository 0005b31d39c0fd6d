package io.weft.shuffle.fetch;

import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static io.weft.support.TestBlocks.write;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.ExchangeOptions.TrafficOptions;
import io.weft.shuffle.ExchangeStatistics;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.net.Compression;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.support.Tap;
import io.weft.support.TestBlocks;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Readers share a slow connection. The last in the queue waits longer than the timeout. All reads
 * succeed, because the connection makes progress all the time.
 */
class SlowLinkTest {
  private static final int CHUNK = 400_000;
  private static final int READERS = 8;

  /** The bytes of one reader take 0.4 s, the bytes of all readers 3.2 s. */
  private static final long BYTES_PER_SECOND = 1_000_000;

  private static final Duration TIMEOUT = Duration.ofMillis(2500);

  @TempDir Path folder;

  private TestCluster cluster;

  @BeforeEach
  void prepare() throws IOException {
    cluster =
        new TestCluster(folder)
            .mode(TransportMode.TCP)
            .window(CHUNK, 4 * CHUNK)
            .timeout(TIMEOUT)
            // The owner counts bytes in a socket's buffer as sent.
            .conf(new SparkConf(false).set("spark.shuffle.io.sendBuffer", "65536"));
  }

  @AfterEach
  void close() throws IOException {
    cluster.close();
  }

  @Test
  void theLastOfManyStreamsIsNotTakenForLost() throws Exception {
    assertThat(readTogether(1).get(ExchangeCounter.REQUESTS_POSTPONED)).isZero();
  }

  /** Answers to further requests wait behind the streams of the others. */
  @Test
  void anAnswerBehindManyStreamsIsNotTakenForLost() throws Exception {
    assertThat(readTogether(2).get(ExchangeCounter.REQUESTS_POSTPONED)).isZero();
  }

  /**
   * The owner serves only a few streams at a time and refuses the others for longer than the
   * timeout.
   */
  @Test
  void aRefusedReaderRetriesWhileTheConnectionMakesProgress() throws Exception {
    cluster.traffic(
        new TrafficOptions(true, Compression.Rule.NONE, 1 << 20, 64 << 20, 2L * CHUNK + 1000));
    assertThat(readTogether(1).get(ExchangeCounter.REQUESTS_POSTPONED)).isPositive();
  }

  private ExchangeStatistics readTogether(int maps) throws Exception {
    ExecutorExchange owner = cluster.open("owner");
    for (long map = 0; map < maps; map++) {
      write(owner, new BlockKey(1, map), 1, (m, p, chunk) -> chunk == 0 ? CHUNK : 0);
    }
    List<BlockRequest> requests =
        LongStream.range(0, maps)
            .mapToObj(map -> request("owner", new BlockKey(1, map), 0, 1, CHUNK))
            .toList();
    ExecutorService threads = Executors.newFixedThreadPool(READERS);
    try (Tap tap = new Tap(owner.address()).slow(BYTES_PER_SECOND)) {
      cluster.announce(tap.address());
      ExecutorExchange reading = cluster.open("reader");
      List<Future<List<TestBlocks.Seen>>> all = new ArrayList<>();
      for (int i = 0; i < READERS; i++) {
        all.add(threads.submit(() -> readAll(reading, requests)));
      }
      for (Future<List<TestBlocks.Seen>> each : all) {
        assertThat(each.get(60, TimeUnit.SECONDS)).hasSize(maps);
      }
      assertThat(tap.connections()).isEqualTo(1);
      assertThat(reading.statistics().get(ExchangeCounter.REQUESTS_FAILED)).isZero();
      return reading.statistics();
    } finally {
      threads.shutdownNow();
    }
  }
}
