package io.weft.spark.executor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.codahale.metrics.MetricRegistry;
import io.weft.peer.PeerAddress;
import io.weft.spark.message.MessageCodec;
import io.weft.spark.message.Messages.Found;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.Serializable;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkConf;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.resource.ResourceInformation;
import org.junit.jupiter.api.Test;

class DriverPeersTest {
  private static final PeerAddress SEVEN =
      new PeerAddress("7", "00c0ffee", "host", 1, "/folder", "token", "boot", "1");

  @Test
  void findsAnExecutor() throws IOException {
    assertThat(peers(() -> new Found(SEVEN), Duration.ofMinutes(1)).lookup("7")).isEqualTo(SEVEN);
  }

  @Test
  void asksAgainWhereTheDriverDoesNotKnowYetOrFails() throws IOException {
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
  void givesUpAtTheDeadlineAndNamesBothSides() {
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

  private record FakeContext(Callable<Object> answer) implements PluginContext {
    @Override
    public Object ask(Object message) throws Exception {
      return MessageCodec.encode((Serializable) answer.call());
    }

    @Override
    public void send(Object message) {
      throw new UnsupportedOperationException();
    }

    @Override
    public MetricRegistry metricRegistry() {
      throw new UnsupportedOperationException();
    }

    @Override
    public SparkConf conf() {
      throw new UnsupportedOperationException();
    }

    @Override
    public String executorID() {
      return "3";
    }

    @Override
    public String hostname() {
      return "here";
    }

    @Override
    public Map<String, ResourceInformation> resources() {
      return Map.of();
    }
  }
}
