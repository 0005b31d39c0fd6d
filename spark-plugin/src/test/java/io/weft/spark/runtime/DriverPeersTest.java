package io.weft.spark.runtime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.peer.PeerAddress;
import io.weft.spark.runtime.Messages.Found;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class DriverPeersTest {
  private static final PeerAddress SEVEN =
      new PeerAddress("7", "00c0ffee", "host", 1, "/folder", "token", "boot", "1");

  @Test
  void findsAnExecutor() throws IOException {
    assertThat(peers(() -> new Found(SEVEN), Duration.ofMinutes(1)).lookup("7")).isEqualTo(SEVEN);
  }

  @Test
  void retriesIfTheDriverDoesNotKnowYetOrFails() throws IOException {
    AtomicInteger asked = new AtomicInteger();
    DriverPeers peers =
        peers(
            () ->
                switch (asked.incrementAndGet()) {
                  case 1 -> new Found(null);
                  case 2 -> throw new IOException("the driver is busy");
                  default -> new Found(SEVEN);
                },
            Duration.ofMinutes(1));
    assertThat(peers.lookup("7")).isEqualTo(SEVEN);
    assertThat(asked).hasValue(3);
  }

  @Test
  void timesOutAndNamesBothSides() {
    DriverPeers peers = peers(() -> new Found(null), Duration.ofMillis(50));
    assertThatThrownBy(() -> peers.lookup("7"))
        .isInstanceOf(IOException.class)
        .hasMessage(
            "Executor 3 asked the driver where executor 7 is, and got no address for 50 ms");
  }

  @Test
  void saysWhyTheDriverDidNotAnswer() {
    IOException cause = new IOException("no route");
    DriverPeers peers =
        peers(
            () -> {
              throw cause;
            },
            Duration.ofMillis(50));
    assertThatThrownBy(() -> peers.lookup("7"))
        .hasMessageContaining("no answer")
        .cause()
        .isSameAs(cause);
  }

  @Test
  void endsWhenInterrupted() {
    DriverPeers peers = peers(() -> new Found(null), Duration.ofHours(1));
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> peers.lookup("7")).isInstanceOf(InterruptedIOException.class);
    assertThat(Thread.interrupted()).isTrue();
  }

  private static DriverPeers peers(Callable<Object> answer, Duration timeout) {
    return new DriverPeers(new FakeContext(answer), timeout);
  }
}
