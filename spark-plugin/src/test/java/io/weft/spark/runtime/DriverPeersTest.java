package io.weft.spark.runtime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.peer.PeerAddress;
import io.weft.spark.runtime.Messages.Found;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class DriverPeersTest {
  private static final PeerAddress SEVEN =
      new PeerAddress("7", "00c0ffee", "host", 1, "/folder", "token", "boot", "1");

  @Test
  void findsExecutorsThatHaveNotEnded() throws IOException {
    DriverPeers peers = peers(() -> new Found(List.of(SEVEN)), Duration.ofMinutes(1));
    assertThat(peers.lookup(Set.of("7", "8"))).isEqualTo(Map.of("7", SEVEN));
  }

  @Test
  void asksABusyDriverAgain() throws IOException {
    AtomicInteger asked = new AtomicInteger();
    DriverPeers peers =
        peers(
            () ->
                switch (asked.incrementAndGet()) {
                  case 1, 2 -> throw new IOException("the driver is busy");
                  default -> new Found(List.of(SEVEN));
                },
            Duration.ofMinutes(1));
    assertThat(peers.lookup(Set.of("7"))).isEqualTo(Map.of("7", SEVEN));
    assertThat(asked).hasValue(3);
  }

  @Test
  void timesOutAndSaysWhoAskedWhomForWhat() {
    IOException cause = new IOException("no route");
    DriverPeers peers =
        peers(
            () -> {
              throw cause;
            },
            Duration.ofMillis(50));
    assertThatThrownBy(() -> peers.lookup(Set.of("1", "2", "4", "5", "7")))
        .isInstanceOf(IOException.class)
        .hasMessageStartingWith(
            "Executor 3 asked the driver for the addresses of executors 1, 2, 4 and 2 others and"
                + " got no answer for 50 ms")
        .hasMessageContaining("no route")
        .cause()
        .isSameAs(cause);
  }

  @Test
  void endsWhenInterrupted() {
    DriverPeers peers =
        peers(
            () -> {
              throw new IOException("the driver is busy");
            },
            Duration.ofHours(1));
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> peers.lookup(Set.of("7"))).isInstanceOf(InterruptedIOException.class);
    assertThat(Thread.interrupted()).isTrue();
  }

  private static DriverPeers peers(Callable<Object> answer, Duration timeout) {
    return new DriverPeers(new FakeContext(answer), "boot", timeout);
  }
}
