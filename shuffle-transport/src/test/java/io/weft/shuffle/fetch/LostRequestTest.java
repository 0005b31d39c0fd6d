package io.weft.shuffle.fetch;

import static io.weft.support.TestBlocks.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.net.BlocksOpened;
import io.weft.shuffle.net.BlocksOpened.ChunkTable;
import io.weft.shuffle.net.OpenBlocks;
import io.weft.shuffle.net.OpenBlocks.StreamId;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.support.FakePeer;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.spark.network.client.TransportClient;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A request that is never answered, on a connection that answers other readers all the time. It
 * times out, and the other readers are not affected.
 */
class LostRequestTest {
  /** A timeout that the other readers keep on a busy machine. */
  private static final Duration TIMEOUT = Duration.ofSeconds(3);

  private static final BlockKey LOST = new BlockKey(1, 4);
  private static final BlockKey OTHER = new BlockKey(1, 5);
  private static final StreamId STREAM = new StreamId(7, 9);
  private static final int BYTES = 1000;
  private static final int READERS = 2;

  @TempDir Path folder;

  private final Set<TransportClient> clients = ConcurrentHashMap.newKeySet();
  private final ExecutorService threads = Executors.newFixedThreadPool(1 + READERS);
  private TestCluster cluster;
  private ExecutorExchange reader;

  @BeforeEach
  void open() throws IOException {
    cluster = new TestCluster(folder).mode(TransportMode.TCP).timeout(TIMEOUT);
    reader = cluster.open("reader");
  }

  @AfterEach
  void close() throws IOException {
    threads.shutdownNow();
    cluster.close();
  }

  private static ByteBuffer answer() {
    ChunkTable table = new ChunkTable().add(1, 1, 0, BYTES, BYTES);
    return new BlocksOpened(STREAM, 0, true, List.of(OTHER), new int[] {1}, table).encode();
  }

  private void read(BlockKey key) throws BlockFetchException {
    List<BlockRequest> one = List.of(request("peer", key, 0, 3, BYTES));
    try (ChunkReader chunks = reader.read(one, FetchListener.NONE)) {
      assertThat(chunks.next()).isTrue();
      assertThat(chunks.length()).isEqualTo(BYTES);
      assertThat(chunks.next()).isFalse();
    }
  }

  /** Returns the number of reads. */
  private int readUntil(Future<?> end) throws BlockFetchException {
    int times = 0;
    while (!end.isDone()) {
      read(OTHER);
      times++;
    }
    return times;
  }

  @Test
  void itEndsWhileOthersAreServed() throws Exception {
    FakePeer.Behaviour behaviour =
        (client, message, callback) -> {
          clients.add(client);
          if (!OpenBlocks.decode(message).ranges().get(0).key().equals(LOST)) {
            callback.onSuccess(answer());
          }
        };
    try (FakePeer peer = new FakePeer(behaviour)) {
      peer.stream(STREAM.toString(), new byte[BYTES]);
      cluster.announce(peer.address("peer"));
      read(OTHER);
      Future<Throwable> lost = threads.submit(() -> catchThrowable(() -> read(LOST)));
      List<Future<Integer>> others =
          IntStream.range(0, READERS).mapToObj(i -> threads.submit(() -> readUntil(lost))).toList();
      Throwable failure = lost.get(60, TimeUnit.SECONDS);
      for (Future<Integer> other : others) {
        assertThat(other.get(60, TimeUnit.SECONDS)).as("other reads").isPositive();
      }
      assertThat(failure)
          .isInstanceOf(BlockFetchException.class)
          .hasMessageContaining(
              "no answer within 3000 ms (fetchTimeout), while answers to much"
                  + " later requests arrive")
          .hasMessageContaining("executor reader cannot read shuffle 1 map 4");
      assertThat(clients).as("connections").hasSize(1);
      assertThat(reader.statistics().get(ExchangeCounter.REQUESTS_FAILED)).isEqualTo(1);
      TestCluster.assertNothingHeld(reader);
    }
  }
}
