package io.weft.shuffle.fetch;

import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static io.weft.support.TestBlocks.write;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
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
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** All readers of an executor together keep the limit on bytes in flight. */
class ManyReadersTest {
  private static final int CHUNK = 50_000;
  private static final int MAPS = 20;
  private static final int READERS = 12;

  /** The bytes of a request for one chunk before its answer arrives. */
  private static final long REQUEST = CHUNK + CHUNK / 8 + 64;

  @TempDir Path folder;

  private TestCluster cluster;

  @BeforeEach
  void prepare() throws IOException {
    cluster =
        new TestCluster(folder)
            .mode(TransportMode.TCP)
            .window(REQUEST, 8 * REQUEST)
            .timeout(Duration.ofSeconds(60));
  }

  @AfterEach
  void close() throws IOException {
    cluster.close();
  }

  private ExecutorExchange open() throws IOException {
    ExecutorExchange owner = cluster.open("owner");
    for (long map = 0; map < MAPS; map++) {
      write(owner, new BlockKey(1, map), 1, (m, p, chunk) -> chunk == 0 ? CHUNK : 0);
    }
    return cluster.open("reader");
  }

  private static List<BlockRequest> requests() {
    List<BlockRequest> requests = new ArrayList<>();
    for (long map = 0; map < MAPS; map++) {
      requests.add(request("owner", new BlockKey(1, map), 0, 1, CHUNK));
    }
    return requests;
  }

  /** Each reader holds two chunks and one request. The limit allows two more requests in all. */
  @Test
  void pausedReadersKeepTheCommonLimit() throws Exception {
    long most = 2 * REQUEST;
    cluster.receiving(most);
    ExecutorExchange reading = open();
    List<ChunkReader> readers = new ArrayList<>();
    for (int i = 0; i < READERS; i++) {
      readers.add(reading.read(requests(), FetchListener.NONE));
    }
    for (int chunk = 1; chunk <= 3; chunk++) {
      for (ChunkReader reader : readers) {
        assertThat(reader.next()).isTrue();
        assertThat(reading.statistics().receivingBytes())
            .as("bytes of all readers")
            .isPositive()
            .isLessThanOrEqualTo(most + READERS * 3 * REQUEST);
      }
    }
    assertThat(reading.statistics().get(ExchangeCounter.REQUESTS_HELD_BACK)).isPositive();
    for (ChunkReader reader : readers) {
      int left = MAPS - 3;
      while (reader.next()) {
        left--;
      }
      assertThat(left).isZero();
      reader.close();
    }
    assertThat(reading.statistics().get(ExchangeCounter.HELD_BACK_NANOS)).isPositive();
    assertThat(reading.statistics().receivingBytes()).isZero();
  }

  /** The limit allows no request. Each reader still has one request, so all finish. */
  @Test
  void noReaderWaitsForTheOthers() throws Exception {
    cluster.receiving(1);
    ExecutorExchange reading = open();
    ExecutorService threads = Executors.newFixedThreadPool(READERS);
    try {
      List<Future<List<TestBlocks.Seen>>> all = new ArrayList<>();
      for (int i = 0; i < READERS; i++) {
        all.add(threads.submit(() -> readAll(reading, requests())));
      }
      for (Future<List<TestBlocks.Seen>> each : all) {
        assertThat(each.get(120, TimeUnit.SECONDS)).hasSize(MAPS);
      }
    } finally {
      threads.shutdownNow();
    }
  }

  @Test
  void aClosedReaderReturnsItsShare() throws Exception {
    ExecutorExchange reading = open();
    try (ChunkReader reader = reading.read(requests(), FetchListener.NONE)) {
      assertThat(reader.next()).isTrue();
      assertThat(reading.statistics().receivingBytes()).isPositive();
    }
    assertThat(reading.statistics().receivingBytes()).isZero();
  }
}
