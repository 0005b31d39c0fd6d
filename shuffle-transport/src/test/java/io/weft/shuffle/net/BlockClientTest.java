package io.weft.shuffle.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.peer.PeerAddress;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.network.server.NoOpRpcHandler;
import org.apache.spark.network.server.TransportServer;
import org.apache.spark.network.util.TransportConf;
import org.junit.jupiter.api.Test;
import scala.Option;

/** Connection attempts that readers share. */
class BlockClientTest {
  private static final int CONNECT_MILLIS = 300;

  /** Another address of this machine. */
  private static final String OTHER_HOST = "127.0.0.2";

  private final SecurityManager security =
      new SecurityManager(new SparkConf(false), Option.empty(), null);

  private TransportConf settings(SparkConf conf, Duration connectTimeout) {
    return SparkTransport.settings(conf, security, 1, connectTimeout);
  }

  /** A server that accepts no connection, because its backlog is full. */
  private static final class SilentServer implements AutoCloseable {
    private final ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
    private final List<Socket> waiting = new ArrayList<>();

    SilentServer() throws IOException {
      boolean answered = true;
      while (answered) {
        Socket socket = new Socket();
        waiting.add(socket);
        try {
          socket.connect(server.getLocalSocketAddress(), CONNECT_MILLIS);
        } catch (SocketTimeoutException e) {
          answered = false;
        }
      }
    }

    PeerAddress address() {
      return address("deaf");
    }

    PeerAddress address(String executorId) {
      String host = server.getInetAddress().getHostAddress();
      return new PeerAddress(executorId, "i", host, server.getLocalPort(), "", "", "", "");
    }

    @Override
    public void close() throws IOException {
      for (Socket socket : waiting) {
        socket.close();
      }
      server.close();
    }
  }

  @Test
  void anAttemptEndsWithItsReadersTimeoutAndIsNotSharedAfterwards() throws Exception {
    TransportConf conf = settings(new SparkConf(false), Duration.ofMillis(600));
    try (SilentServer deaf = new SilentServer();
        SparkTransport transport = new SparkTransport(conf, security, "", new NoOpRpcHandler());
        BlockClient client = new BlockClient(transport)) {
      CompletableFuture<PeerConnection> first = client.connect(deaf.address());
      assertThat(client.connect(deaf.address())).as("meanwhile").isSameAs(first);
      assertThat(first)
          .failsWithin(30, TimeUnit.SECONDS)
          .withThrowableOfType(ExecutionException.class)
          .havingCause()
          .isInstanceOf(IOException.class)
          .withMessageContaining("connecting to executor deaf");
      assertThat(client.connect(deaf.address())).isNotSameAs(first);
    }
  }

  /** A thread for each executor would be a thousand threads in each of a thousand executors. */
  @Test
  void threadsDoNotGrowWithExecutors() throws Exception {
    TransportConf conf = settings(new SparkConf(false), Duration.ofMinutes(2));
    List<CompletableFuture<PeerConnection>> attempts = new ArrayList<>();
    try (SilentServer deaf = new SilentServer();
        SparkTransport transport = new SparkTransport(conf, security, "", new NoOpRpcHandler());
        BlockClient client = new BlockClient(transport)) {
      for (int i = 0; i < 4 * BlockClient.MAX_CONNECTING; i++) {
        attempts.add(client.connect(deaf.address("deaf-" + i)));
      }
      assertThat(connecting()).isBetween(1L, (long) BlockClient.MAX_CONNECTING);
    }
    assertThat(attempts)
        .allSatisfy(
            attempt ->
                assertThat(attempt)
                    .failsWithin(30, TimeUnit.SECONDS)
                    .withThrowableOfType(ExecutionException.class)
                    .havingCause()
                    .isInstanceOf(IOException.class));
    await()
        .atMost(Duration.ofSeconds(60))
        .untilAsserted(() -> assertThat(connecting()).as("threads after close").isZero());
  }

  /** A failed rack: more executors than there are threads for connecting. */
  @Test
  void unreachablePeersDoNotDelayAHealthyOne() throws Exception {
    TransportConf conf = settings(new SparkConf(false), Duration.ofSeconds(1));
    int unreachable = 4 * BlockClient.MAX_CONNECTING;
    List<CompletableFuture<PeerConnection>> attempts = new ArrayList<>();
    try (SilentServer deaf = new SilentServer();
        SparkTransport transport = new SparkTransport(conf, security, "", new NoOpRpcHandler());
        TransportServer server = transport.createServer(OTHER_HOST, 0);
        BlockClient client = new BlockClient(transport)) {
      for (int i = 0; i < unreachable; i++) {
        attempts.add(client.connect(deaf.address("deaf-" + i)));
      }
      PeerAddress healthy =
          new PeerAddress("healthy", "i", OTHER_HOST, server.getPort(), "", "", "", "");
      assertThat(client.connect(healthy)).succeedsWithin(30, TimeUnit.SECONDS);
      assertThat(attempts.stream().filter(CompletableFuture::isDone).count())
          .as("attempts that the healthy one had to wait for")
          .isLessThan(unreachable / 2);
      assertThat(connecting())
          .isLessThanOrEqualTo(BlockClient.MAX_CONNECTING + BlockClient.MAX_TO_UNREACHABLE);
    }
  }

  private static long connecting() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith("weft-connect-"))
        .count();
  }

  @Test
  void theShorterTimeoutHolds() {
    assertThat(settings(new SparkConf(false), Duration.ofMillis(600)).connectionCreationTimeoutMs())
        .isEqualTo(1000);
    assertThat(settings(new SparkConf(false), Duration.ofMinutes(2)).connectionCreationTimeoutMs())
        .as("less than Spark's, because dead hosts keep threads for so long")
        .isEqualTo(10_000);
    SparkConf own = new SparkConf(false).set("spark.shuffle.io.connectionCreationTimeout", "40s");
    assertThat(settings(own, Duration.ofMinutes(2)).connectionCreationTimeoutMs())
        .isEqualTo(40_000);
    SparkConf set = new SparkConf(false).set("spark.network.timeout", "7s");
    assertThat(settings(set, Duration.ofMinutes(2)).connectionCreationTimeoutMs()).isEqualTo(7000);
    assertThat(settings(set, Duration.ofSeconds(3)).connectionCreationTimeoutMs()).isEqualTo(3000);
    assertThat(set.getAll()).hasSize(1);
  }
}
