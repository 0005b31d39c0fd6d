package io.weft.shuffle.net;

import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static io.weft.support.TestBlocks.write;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.ExchangeOptions.TrafficOptions;
import io.weft.shuffle.ExchangeStatistics;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.net.BlockClient.SparkConnection;
import io.weft.shuffle.net.OpenBlocks.BlockRange;
import io.weft.shuffle.net.OpenBlocks.BlocksRefused;
import io.weft.shuffle.net.OpenBlocks.StreamId;
import io.weft.shuffle.net.PeerConnection.PendingCall;
import io.weft.shuffle.net.PeerConnection.StreamReceiver;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportClientFactory;
import org.apache.spark.network.server.NoOpRpcHandler;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import scala.Option;

/** Readers that open streams and do not receive them. The memory held for them is limited. */
class StuckReaderTest {
  private static final int CHUNK = 50_000;
  private static final long PER_PEER = 4L * CHUNK;
  private static final long TOTAL = 6L * CHUNK;
  private static final int MAPS = 20;

  @TempDir Path folder;

  private TestCluster cluster;
  private ExecutorExchange owner;

  @BeforeEach
  void open() throws IOException {
    cluster =
        new TestCluster(folder)
            .mode(TransportMode.TCP)
            .window(CHUNK + 64, 4 * CHUNK)
            .timeout(Duration.ofSeconds(60))
            .traffic(new TrafficOptions(true, Compression.Rule.NONE, 1 << 20, TOTAL, PER_PEER));
  }

  @AfterEach
  void close() throws IOException {
    cluster.close();
  }

  private void openOwner() throws IOException {
    owner = cluster.open("owner");
    for (long map = 0; map < MAPS; map++) {
      write(owner, new BlockKey(1, map), 1, (m, p, chunk) -> chunk == 0 ? CHUNK : 0);
    }
  }

  private boolean noBytesAreServed() {
    ExchangeStatistics now = owner.statistics();
    return now.servedBytes() == 0 && now.openStreams() == 0;
  }

  private static List<BlockRequest> requests() {
    List<BlockRequest> requests = new ArrayList<>();
    for (long map = 0; map < MAPS; map++) {
      requests.add(request("owner", new BlockKey(1, map), 0, 1, CHUNK));
    }
    return requests;
  }

  /** A client that requests streams and does not receive them. */
  private final class Stuck implements AutoCloseable {
    private final SparkTransport transport;
    private final TransportClientFactory factory;
    private final TransportClient client;
    private final PeerConnection connection;
    private final List<StreamId> opened = new ArrayList<>();

    Stuck() throws IOException, InterruptedException {
      SparkConf conf = new SparkConf(false);
      SecurityManager security = new SecurityManager(conf, Option.empty(), null);
      transport =
          new SparkTransport(
              SparkTransport.settings(conf, security, 1, Duration.ofMinutes(1)),
              security,
              "",
              new NoOpRpcHandler());
      factory = transport.createClientFactory();
      client = factory.createClient("localhost", owner.address().port());
      connection = new SparkConnection(client);
    }

    /** Opens streams until a refusal. Returns their number. */
    int openAll() throws IOException {
      return open(MAPS, CHUNK);
    }

    int open(int maps, int bytes) throws IOException {
      for (int map = 0; map < maps; map++) {
        OpenBlocks request =
            new OpenBlocks(
                owner.address().incarnation(),
                bytes,
                0,
                10,
                true,
                Compression.NONE,
                List.of(new BlockRange(new BlockKey(1, map), 0, 1)));
        ByteBuffer answer = ask(request);
        if (BlocksRefused.matches(answer)) {
          BlocksRefused refused = BlocksRefused.decode(answer, 1);
          assertThat(refused.retryAfterMillis()).as(refused.reason()).isPositive();
          return map;
        }
        BlocksOpened streams = BlocksOpened.decode(answer, request);
        assertThat(streams.totalBytes()).isEqualTo(bytes);
        opened.add(streams.stream());
      }
      return maps;
    }

    /** Requests streams and stops reading the socket. */
    void requestAndReceiveNothing() {
      client.getChannel().config().setAutoRead(false);
      opened.forEach(stream -> connection.receive(stream, turn(), IGNORING));
    }

    private static PendingCall turn() {
      return new PendingCall(System.nanoTime(), TimeUnit.MINUTES.toNanos(1));
    }

    private ByteBuffer ask(OpenBlocks request) {
      CompletableFuture<ByteBuffer> answer = new CompletableFuture<>();
      connection.open(
          request,
          turn(),
          new RpcResponseCallback() {
            @Override
            public void onSuccess(ByteBuffer response) {
              ByteBuffer copy = ByteBuffer.allocate(response.remaining());
              answer.complete(copy.put(response).flip());
            }

            @Override
            public void onFailure(Throwable cause) {
              answer.completeExceptionally(cause);
            }
          });
      return answer.orTimeout(30, TimeUnit.SECONDS).join();
    }

    @Override
    public void close() {
      factory.close();
      transport.close();
    }
  }

  private static final StreamReceiver IGNORING =
      new StreamReceiver() {
        @Override
        public long streamBytes() {
          return 0;
        }

        @Override
        public ByteBuffer lendBuffer() {
          return null;
        }

        @Override
        public void bufferReturned() {}

        @Override
        public void onData(String streamId, ByteBuffer data) {}

        @Override
        public void onComplete(String streamId) {}

        @Override
        public void onFailure(String streamId, Throwable cause) {}
      };

  @Test
  void aStuckReaderIsRefusedAndOthersAreServed() throws Exception {
    openOwner();
    try (Stuck stuck = new Stuck()) {
      assertThat(stuck.openAll()).isEqualTo(4);
      assertThat(owner.statistics().servedBytes()).isEqualTo(PER_PEER);
      assertThat(stuck.openAll()).as("again").isZero();
      ExecutorExchange reader = cluster.open("reader");
      assertThat(readAll(reader, requests())).hasSize(MAPS);
      await("only the stuck one's bytes are held")
          .atMost(Duration.ofSeconds(30))
          .until(() -> owner.statistics().servedBytes() == PER_PEER);
    }
    await("its streams ended with its connection")
        .atMost(Duration.ofSeconds(30))
        .until(() -> owner.statistics().servedBytes() == 0);
  }

  @Test
  void allReadersHoldNoMoreThanTheTotalAndAReaderWaits() throws Exception {
    openOwner();
    ExecutorExchange reader = cluster.open("reader");
    CompletableFuture<Integer> read;
    try (Stuck first = new Stuck();
        Stuck second = new Stuck()) {
      assertThat(first.openAll()).isEqualTo(4);
      assertThat(second.openAll()).isEqualTo(2);
      assertThat(owner.statistics().servedBytes()).isEqualTo(TOTAL);
      read = CompletableFuture.supplyAsync(() -> count(reader));
      await("the reader was told to retry")
          .atMost(Duration.ofSeconds(30))
          .until(() -> reader.statistics().get(ExchangeCounter.REQUESTS_POSTPONED) >= 2);
      await("no bytes are held while the reader waits")
          .atMost(Duration.ofSeconds(30))
          .until(() -> reader.statistics().arena().usedBytes() == 0);
      assertThat(owner.statistics().servedBytes()).isEqualTo(TOTAL);
    }
    assertThat(read.get(60, TimeUnit.SECONDS)).isEqualTo(MAPS);
    assertThat(reader.statistics().get(ExchangeCounter.BUSY_NANOS)).isPositive();
    assertThat(reader.statistics().get(ExchangeCounter.REQUESTS_FAILED)).isZero();
  }

  private static int count(ExecutorExchange reader) {
    try {
      return readAll(reader, requests()).size();
    } catch (BlockFetchException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void aPeerThatIsBusyForTooLongIsAFailure() throws Exception {
    openOwner();
    // Long enough for the first connection on a busy machine.
    ExecutorExchange reader = cluster.timeout(Duration.ofSeconds(5)).open("reader");
    try (Stuck first = new Stuck();
        Stuck second = new Stuck()) {
      first.openAll();
      second.openAll();
      assertThatThrownBy(() -> readAll(reader, requests()))
          .isInstanceOf(BlockFetchException.class)
          .hasMessageContaining("refused until the timeout of 5000 ms (fetchTimeout)")
          .hasMessageContaining("executor owner holds " + TOTAL + " bytes for peers");
      TestCluster.assertNothingHeld(reader);
    }
  }

  @Test
  void unrequestedStreamsAreClosedAfterTheTimeout() throws Exception {
    cluster.timeout(Duration.ofMillis(300));
    openOwner();
    try (Stuck stuck = new Stuck()) {
      // More, if the first streams were closed before the last ones were opened.
      assertThat(stuck.openAll()).isGreaterThanOrEqualTo(4);
      await("the owner closed the streams")
          .atMost(Duration.ofSeconds(30))
          .until(this::noBytesAreServed);
    }
  }

  @Test
  void unreceivedStreamsAreClosedAfterTheTimeout() throws Exception {
    cluster
        .timeout(Duration.ofSeconds(3))
        .traffic(new TrafficOptions(true, Compression.Rule.NONE, 1 << 20, 1L << 30, 1L << 30));
    owner = cluster.open("owner");
    // More than the socket buffers of both ends hold together.
    for (long map = 0; map < 40; map++) {
      write(owner, new BlockKey(1, map), 1, (m, p, chunk) -> chunk == 0 ? 1_000_000 : 0);
    }
    try (Stuck stuck = new Stuck()) {
      assertThat(stuck.open(40, 1_000_000)).isEqualTo(40);
      stuck.requestAndReceiveNothing();
      assertThat(owner.statistics().servedBytes()).isPositive();
      await("the owner closed the connection")
          .atMost(Duration.ofSeconds(60))
          .until(this::noBytesAreServed);
    }
  }
}
