package io.weft.collectives.bootstrap;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.UniqueId;
import io.weft.collectives.bootstrap.Greeting.Purpose;
import io.weft.device.Deadline;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Only ranks of the communicator are accepted, and strangers delay no rank. */
class ListenerTest {
  private static final Greeting EXPECTED = new Greeting(3, 1, Purpose.PAIRS);

  private final UniqueId id = UniqueId.create();
  private final ExecutorService thread = Executors.newSingleThreadExecutor();

  @AfterEach
  void stopThread() {
    thread.shutdownNow();
  }

  private static Deadline soon() {
    return Deadline.after(Duration.ofSeconds(30));
  }

  private Future<Map<Greeting, SocketChannel>> listen(Listener listener, Duration limit) {
    return thread.submit(() -> listener.await(id, Set.of(EXPECTED), Deadline.after(limit)));
  }

  @Test
  void rankOfTheCommunicatorIsAccepted() throws Exception {
    try (Listener listener = Listener.open("127.0.0.1")) {
      Future<Map<Greeting, SocketChannel>> come = listen(listener, Duration.ofSeconds(30));
      try (Connector connector = Connector.greet(id, EXPECTED, listener.address(), soon());
          SocketChannel mine = connector.awaitWelcome(soon());
          SocketChannel theirs = come.get(60, TimeUnit.SECONDS).get(EXPECTED)) {
        assertThat(theirs.getRemoteAddress()).isEqualTo(mine.getLocalAddress());
      }
    }
  }

  /**
   * One stranger sends nothing, one sends another protocol, one is of another communicator, one has
   * a wrong rank.
   */
  @Test
  void strangersAreRefusedAndDoNotDelayARank() throws Exception {
    try (Listener listener = Listener.open("127.0.0.1");
        SocketChannel silent = SocketChannel.open(listener.address());
        SocketChannel babbling = SocketChannel.open(listener.address());
        Connector foreign =
            Connector.greet(UniqueId.create(), EXPECTED, listener.address(), soon());
        Connector unexpected =
            Connector.greet(id, new Greeting(2, 1, Purpose.PAIRS), listener.address(), soon())) {
      write(
          babbling, "GET / HTTP/1.1\r\nHost: unknown\r\nAccept: everything, please, and more\r\n");
      Future<Map<Greeting, SocketChannel>> come = listen(listener, Duration.ofSeconds(30));
      assertRefused(foreign);
      assertRefused(unexpected);
      try (Connector rank = Connector.greet(id, EXPECTED, listener.address(), soon());
          SocketChannel mine = rank.awaitWelcome(soon())) {
        assertThat(come.get(60, TimeUnit.SECONDS)).containsOnlyKeys(EXPECTED);
        assertThat(mine.isOpen()).isTrue();
        come.get().get(EXPECTED).close();
      }
      assertThat(silent.isConnected()).isTrue();
    }
  }

  private static void write(SocketChannel channel, String text) throws IOException {
    ByteBuffer bytes = ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII));
    while (bytes.hasRemaining()) {
      channel.write(bytes);
    }
  }

  private static void assertRefused(Connector connector) {
    assertThatThrownBy(() -> connector.awaitWelcome(soon()))
        .isInstanceOf(CollectiveException.class)
        .hasMessageContaining("rank 1");
  }

  @Test
  void deadlineReturnsTheRanksThatConnected() throws Exception {
    try (Listener listener = Listener.open("127.0.0.1")) {
      Future<Map<Greeting, SocketChannel>> come = listen(listener, Duration.ofMillis(200));
      assertThat(come.get(60, TimeUnit.SECONDS)).isEmpty();
    }
  }

  /** A stranger that listens at the address of a rank cannot take its place. */
  @Test
  void wrongWelcomeIsDetected() throws Exception {
    try (ServerSocketChannel stranger = ServerSocketChannel.open()) {
      stranger.bind(new InetSocketAddress("127.0.0.1", 0));
      InetSocketAddress address = (InetSocketAddress) stranger.getLocalAddress();
      try (Connector connector = Connector.greet(id, EXPECTED, address, soon());
          SocketChannel channel = stranger.accept()) {
        write(channel, "welcome, welcome, welcome, welcome");
        assertThatThrownBy(() -> connector.awaitWelcome(soon()))
            .isInstanceOf(CollectiveException.class)
            .hasMessageContaining("its welcome is wrong");
      }
    }
  }
}
