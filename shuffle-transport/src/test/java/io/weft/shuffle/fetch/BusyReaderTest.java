package io.weft.shuffle.fetch;

import static io.weft.support.TestBlocks.request;
import static io.weft.support.TestBlocks.write;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.net.BlocksOpened;
import io.weft.shuffle.net.BlocksOpened.ChunkTable;
import io.weft.shuffle.net.OpenBlocks.BlocksRefused;
import io.weft.shuffle.net.OpenBlocks.StreamId;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.support.FakePeer;
import io.weft.support.Tap;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.IntSupplier;
import org.apache.spark.SparkConf;
import org.apache.spark.network.client.RpcResponseCallback;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Requests fail while their reader's task works on a chunk of another executor. */
class BusyReaderTest {
  /** Long enough for each request on a busy machine. */
  private static final Duration TIMEOUT = Duration.ofSeconds(3);

  private static final Duration WORK = Duration.ofSeconds(4);
  private static final BlockKey OWN = new BlockKey(1, 0);
  private static final BlockKey OF_PEER = new BlockKey(1, 4);
  private static final BlockKey OF_OWNER = new BlockKey(1, 5);
  private static final StreamId STREAM = new StreamId(7, 9);
  private static final int BYTES = 1000;
  private static final int LONG = 10_000;

  @TempDir Path folder;

  private TestCluster cluster;
  private ExecutorExchange reader;

  @BeforeEach
  void open() throws IOException {
    cluster = new TestCluster(folder).mode(TransportMode.TCP).timeout(TIMEOUT);
    reader = cluster.open("reader");
  }

  @AfterEach
  void close() throws IOException {
    cluster.close();
  }

  private static ByteBuffer answer() {
    ChunkTable table = new ChunkTable().add(0, 1, 0, BYTES, BYTES);
    return new BlocksOpened(STREAM, 0, true, List.of(OF_PEER), new int[] {1}, table).encode();
  }

  private FakePeer announced(FakePeer peer) {
    peer.stream(STREAM.toString(), new byte[BYTES]);
    cluster.announce(peer.address("peer"));
    return peer;
  }

  /** Reads an own block, works on it for longer than the timeout, and reads the other one. */
  private void readWithWork(String executor, BlockRequest other, IntSupplier attempts)
      throws Exception {
    write(reader, OWN, 1, (map, partition, chunk) -> chunk == 0 ? BYTES : 0);
    List<BlockRequest> requests = List.of(request(executor, OWN, 0, 1, BYTES), other);
    try (ChunkReader chunks = reader.read(requests, FetchListener.NONE)) {
      assertNext(chunks, OWN, 1);
      long began = System.nanoTime();
      await("the work on the chunk")
          .until(() -> attempts.getAsInt() == 1 && System.nanoTime() - began > WORK.toNanos());
      assertNext(chunks, other.key(), 1);
      assertThat(chunks.next()).isFalse();
    }
    assertThat(attempts.getAsInt()).isEqualTo(2);
  }

  @Test
  void aBusyPeerIsAskedAgain() throws Exception {
    AtomicBoolean busy = new AtomicBoolean(true);
    FakePeer.Behaviour refusesOnce =
        (client, message, callback) ->
            callback.onSuccess(
                busy.getAndSet(false) ? new BlocksRefused(-1, 20, "busy").encode() : answer());
    try (FakePeer peer = announced(new FakePeer(refusesOnce))) {
      readWithWork("reader", request("peer", OF_PEER, 0, 1, BYTES), peer::requests);
    }
    assertThat(reader.statistics().get(ExchangeCounter.REQUESTS_FAILED)).isZero();
  }

  /**
   * With authentication, the second connection needs an answer of the peer, so it takes a while.
   */
  @Test
  void aLostConnectionIsMadeAgain() throws Exception {
    cluster.conf(
        new SparkConf(false)
            .set("spark.authenticate", "true")
            .set("spark.authenticate.secret", "right"));
    ExecutorExchange owner = cluster.open("owner");
    write(owner, OF_OWNER, 1, (map, partition, chunk) -> chunk == 0 ? BYTES : 0);
    reader = cluster.open("secured");
    try (Tap tap = new Tap(owner.address()).cutAfter(0)) {
      cluster.announce(tap.address());
      readWithWork("secured", request("owner", OF_OWNER, 0, 1, BYTES), tap::connections);
    }
    assertThat(reader.statistics().get(ExchangeCounter.REQUESTS_FAILED)).isEqualTo(1);
  }

  /** All chunks that have arrived are released when the reader learns of the lost connection. */
  @Test
  void theRestOfABrokenAnswerIsFetchedAfterAChunkOfAnotherPeer() throws Exception {
    ExecutorExchange owner = cluster.open("owner");
    write(owner, OF_OWNER, 1, (map, partition, chunk) -> chunk < 3 ? LONG : 0);
    CompletableFuture<RpcResponseCallback> asked = new CompletableFuture<>();
    List<BlockRequest> requests =
        List.of(request("owner", OF_OWNER, 0, 1, 3 * LONG), request("peer", OF_PEER, 0, 1, BYTES));
    try (FakePeer unused =
            announced(new FakePeer((client, message, callback) -> asked.complete(callback)));
        Tap tap = new Tap(owner.address()).stopAfter(LONG * 5 / 2)) {
      cluster.announce(tap.address());
      try (ChunkReader chunks = reader.read(requests, FetchListener.NONE)) {
        assertNext(chunks, OF_OWNER, 1);
        assertNext(chunks, OF_OWNER, 2);
        asked.get(60, TimeUnit.SECONDS).onSuccess(answer());
        assertNext(chunks, OF_PEER, 1);
        tap.cut();
        // If the cut is noticed later, the test shows less, but does not fail.
        await("the cut is noticed").pollDelay(Duration.ofMillis(300)).until(() -> true);
        assertNext(chunks, OF_OWNER, 3);
        assertThat(chunks.next()).isFalse();
      }
      assertThat(tap.connections()).isEqualTo(2);
    }
    assertThat(reader.statistics().get(ExchangeCounter.REQUESTS_FAILED)).isEqualTo(1);
  }

  private static void assertNext(ChunkReader chunks, BlockKey key, int rows)
      throws BlockFetchException {
    assertThat(chunks.next()).isTrue();
    assertThat(chunks.request().key()).isEqualTo(key);
    assertThat(chunks.rows()).isEqualTo(rows);
  }
}
