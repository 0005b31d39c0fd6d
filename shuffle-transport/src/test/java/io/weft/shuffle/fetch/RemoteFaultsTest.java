package io.weft.shuffle.fetch;

import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static io.weft.support.TestBlocks.write;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.net.BlocksOpened;
import io.weft.shuffle.net.BlocksOpened.ChunkTable;
import io.weft.shuffle.net.OpenBlocks;
import io.weft.shuffle.net.OpenBlocks.BlocksRefused;
import io.weft.shuffle.net.OpenBlocks.StreamId;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.support.FakePeer;
import io.weft.support.TestBlocks.Sizes;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Peers that die, hang, refuse or send wrong data. No memory may be held afterwards. */
class RemoteFaultsTest {
  /** The timeout of tests that expect it. Other tests have a timeout that a busy machine keeps. */
  private static final Duration SHORT = Duration.ofMillis(2500);

  private static final BlockKey KEY = new BlockKey(1, 4);
  private static final StreamId STREAM = new StreamId(7, 9);

  @TempDir Path folder;

  private TestCluster cluster;
  private ExecutorExchange reader;

  @BeforeEach
  void open() throws IOException {
    cluster = new TestCluster(folder).mode(TransportMode.TCP);
    reader = cluster.open("reader");
  }

  private void openWithTimeout(Duration timeout) throws IOException {
    reader = cluster.timeout(timeout).open("timed");
  }

  @AfterEach
  void close() throws IOException {
    cluster.close();
  }

  @Test
  void aPeerThatAcceptsAndStaysSilent() throws Exception {
    openWithTimeout(SHORT);
    try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getByName("localhost"))) {
      announce(silent.getLocalPort());
      long started = System.nanoTime();
      assertFails(
          "no answer within 2500 ms",
          "executor timed cannot read shuffle 1 map 4",
          "over the network");
      assertThat(Duration.ofNanos(System.nanoTime() - started))
          .as("long before Spark's network timeout")
          .isBetween(SHORT, SHORT.plusSeconds(30));
      assertThat(reader.statistics().get(ExchangeCounter.REQUESTS))
          .as("requests without a retry")
          .isEqualTo(1);
    }
  }

  @Test
  void aPeerThatDoesNotListen() throws Exception {
    // The port is reserved, and no process listens on it.
    try (Socket taken = new Socket()) {
      taken.bind(new InetSocketAddress(InetAddress.getByName("localhost"), 0));
      announce(taken.getLocalPort());
      assertFails("connecting to executor peer (localhost:" + taken.getLocalPort(), "failed");
    }
  }

  @Test
  void anUnknownPeer() {
    assertFails("executor reader cannot read shuffle 1 map 4", "the executor has ended");
  }

  @Test
  void aPeerThatAnswersNoise() throws Exception {
    try (ServerSocket noisy = new ServerSocket(0, 50, InetAddress.getByName("localhost"))) {
      CompletableFuture<Void> noise = CompletableFuture.runAsync(() -> serveNoise(noisy));
      announce(noisy.getLocalPort());
      assertFails("executor reader cannot read shuffle 1 map 4 partitions [0, 3) of executor peer");
      noisy.close();
      noise.get(60, TimeUnit.SECONDS);
    }
  }

  private static void serveNoise(ServerSocket server) {
    Random random = new Random(1);
    while (!server.isClosed()) {
      try (Socket socket = server.accept();
          OutputStream out = socket.getOutputStream()) {
        byte[] bytes = new byte[100_000];
        random.nextBytes(bytes);
        out.write(bytes);
      } catch (IOException e) {
        // The reader closed the connection, or the test has ended.
      }
    }
  }

  @Test
  void aPeerThatClosesEveryConnectionIsAskedTwice() throws Exception {
    try (FakePeer peer = new FakePeer((client, message, callback) -> client.getChannel().close())) {
      cluster.announce(peer.address("peer"));
      assertFails("closed");
      assertThat(peer.requests()).isEqualTo(2);
      assertThat(reader.statistics().get(ExchangeCounter.REQUESTS_FAILED)).isEqualTo(2);
    }
  }

  @Test
  void aPeerWhoseHandlerFails() throws Exception {
    assertAnswerFails(
        (client, message, callback) -> callback.onFailure(new IOException("out of luck")),
        "out of luck");
  }

  @Test
  void aPeerThatAnswersGarbage() throws Exception {
    assertAnswerFails(
        (client, message, callback) -> callback.onSuccess(ByteBuffer.wrap(new byte[64])),
        "blocks-opened message: bad magic");
  }

  @Test
  void aPeerOfAnotherVersion() throws Exception {
    assertAnswerFails(
        (client, message, callback) -> {
          ByteBuffer answer = new BlocksRefused(-1, 0, "x").encode();
          callback.onSuccess(answer.order(ByteOrder.LITTLE_ENDIAN).putShort(4, (short) 9));
        },
        "peer speaks version 9");
  }

  @Test
  void aPeerThatAnswersForAnotherMap() throws Exception {
    assertAnswerFails(
        (client, message, callback) -> callback.onSuccess(answer(new BlockKey(1, 5), 100).encode()),
        "shuffle 1 map 4 was requested, the answer has shuffle 1 map 5");
  }

  @Test
  void aStreamThatIsTooShort() throws Exception {
    assertStreamFails(99, "ended after 0 of 1 chunks");
  }

  @Test
  void aStreamThatIsTooLong() throws Exception {
    assertStreamFails(101, "bytes beyond its last chunk");
  }

  @Test
  void aStreamThatDoesNotExist() throws Exception {
    assertAnswerFails(
        (client, message, callback) -> callback.onSuccess(answer(KEY, 100).encode()),
        "Stream '" + STREAM + "' was not found");
  }

  @Test
  void aStreamThatNeverComes() throws Exception {
    openWithTimeout(Duration.ofSeconds(3));
    CountDownLatch release = new CountDownLatch(1);
    FakePeer.Behaviour behaviour =
        (client, message, callback) -> {
          callback.onSuccess(answer(KEY, 100).encode());
          holdUp(release);
        };
    try (FakePeer peer = new FakePeer(behaviour)) {
      cluster.announce(peer.address("peer"));
      assertFails("no further bytes within 3000 ms");
      release.countDown();
    }
  }

  private static void holdUp(CountDownLatch latch) {
    try {
      latch.await(30, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void assertStreamFails(int length, String reason) throws IOException {
    try (FakePeer peer =
        new FakePeer(
            (client, message, callback) -> callback.onSuccess(answer(KEY, 100).encode()))) {
      peer.stream(STREAM.toString(), new byte[length]);
      cluster.announce(peer.address("peer"));
      assertFails(reason);
    }
  }

  private void assertAnswerFails(FakePeer.Behaviour behaviour, String reason) throws IOException {
    try (FakePeer peer = new FakePeer(behaviour)) {
      cluster.announce(peer.address("peer"));
      assertFails(reason, "executor peer (localhost:", "shuffle 1 map 4 partitions [0, 3)");
      assertThat(peer.requests()).as("requests without a retry").isEqualTo(1);
    }
  }

  private static BlocksOpened answer(BlockKey key, long length) {
    return new BlocksOpened(
        STREAM,
        0,
        true,
        List.of(key),
        new int[] {1},
        new ChunkTable().add(1, 1, 0, (int) length, length));
  }

  @Test
  void aFormerLifeOfAnExecutorIsNotTakenForTheNewOne() throws Exception {
    ExecutorExchange owner = cluster.open("owner");
    write(owner, KEY, 3, (map, partition, chunk) -> chunk == 0 ? 100 : 0);
    PeerAddress now = owner.address();
    cluster.announce(
        new PeerAddress(
            "owner",
            "00000000",
            now.host(),
            now.port(),
            now.folder(),
            now.token(),
            now.bootId(),
            "test"));
    assertThatThrownBy(() -> readAll(reader, List.of(request("owner", KEY, 0, 3, 100))))
        .isInstanceOf(BlockFetchException.class)
        .hasMessageContaining("this is executor owner, incarnation " + now.incarnation())
        .hasMessageContaining("the request is for incarnation 00000000");
    // The wrong address is forgotten.
    cluster.announce(now);
    assertThat(readAll(reader, List.of(request("owner", KEY, 0, 3, 100)))).hasSize(3);
  }

  @Test
  void aRefusalNamesTheFailedRequest() throws Exception {
    FakePeer.Behaviour behaviour =
        (client, message, callback) -> {
          int range = OpenBlocks.decode(message).ranges().size() - 1;
          callback.onSuccess(new BlocksRefused(range, 0, "no such output").encode());
        };
    try (FakePeer peer = new FakePeer(behaviour)) {
      cluster.announce(peer.address("peer"));
      BlockRequest blamed = request("peer", new BlockKey(1, 9), 2, 3, 10);
      assertThatThrownBy(() -> readAll(reader, List.of(request("peer", KEY, 0, 3, 10), blamed)))
          .isInstanceOfSatisfying(
              BlockFetchException.class,
              e -> {
                assertThat(e.request()).isEqualTo(blamed);
                assertThat(e.partition()).isEqualTo(2);
              });
    }
  }

  @Test
  void anInterruptedReaderReturnsAtOnce() throws Exception {
    try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getByName("localhost"))) {
      announce(silent.getLocalPort());
      AtomicReference<Throwable> thrown = new AtomicReference<>();
      CountDownLatch ended = new CountDownLatch(1);
      Thread task =
          new Thread(
              () -> {
                try {
                  readAll(reader, requests());
                } catch (Throwable e) {
                  thrown.set(e);
                }
                assertThat(Thread.currentThread().isInterrupted()).isTrue();
                ended.countDown();
              },
              "weft-test-task");
      task.start();
      await("the reader waits").until(() -> reader.statistics().get(ExchangeCounter.REQUESTS) == 1);
      task.interrupt();
      assertThat(ended.await(20, TimeUnit.SECONDS)).as("long before the timeout").isTrue();
      assertThat(thrown.get()).isInstanceOf(FetchInterruptedException.class);
    }
  }

  @Test
  void closingTheExchangeEndsAWaitingReader() throws Exception {
    try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getByName("localhost"))) {
      announce(silent.getLocalPort());
      ExecutorExchange closing = cluster.open("closing");
      CompletableFuture<Void> read =
          CompletableFuture.runAsync(
              () ->
                  assertThatThrownBy(() -> readAll(closing, requests()))
                      .isInstanceOf(Exception.class));
      await("the reader waits")
          .until(() -> closing.statistics().get(ExchangeCounter.REQUESTS) == 1);
      closing.close();
      read.get(20, TimeUnit.SECONDS);
    }
  }

  @Test
  void nothingIsAllocatedWhileBytesArrive() throws Exception {
    ExecutorExchange owner = cluster.open("owner");
    Sizes sizes = (map, partition, chunk) -> chunk < 5 ? 40_000 : 0;
    for (long map = 0; map < 20; map++) {
      write(owner, new BlockKey(1, map), 1, sizes);
    }
    List<BlockRequest> requests =
        java.util.stream.LongStream.range(0, 20)
            .mapToObj(map -> request("owner", new BlockKey(1, map), 0, 1, 200_000))
            .toList();
    assertThat(readAll(reader, requests)).hasSize(100);
    assertThat(reader.statistics().arena().allocations())
        .as("one for each request")
        .isEqualTo(reader.statistics().get(ExchangeCounter.REQUESTS));
    assertThat(reader.statistics().arena().peakUsedBytes()).isLessThanOrEqualTo(1 << 20);
  }

  private void announce(int port) {
    cluster.announce(
        new PeerAddress(
            "peer", "beefbeef", "localhost", port, "/nowhere", "", "elsewhere", "test"));
  }

  private static List<BlockRequest> requests() {
    return List.of(request("peer", KEY, 0, 3, 100));
  }

  private void assertFails(String... parts) {
    assertThatThrownBy(() -> readAll(reader, requests()))
        .isInstanceOf(BlockFetchException.class)
        .satisfies(
            e -> {
              for (String part : parts) {
                assertThat(e.getMessage()).contains(part);
              }
            });
    TestCluster.assertNothingHeld(reader);
  }
}
