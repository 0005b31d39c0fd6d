package io.weft.shuffle.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.ExecutorExchange;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Calls of services between executors. */
class PeerCallClientTest {
  @TempDir Path folder;

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  @Test
  void aRequestIsAnsweredOrItsFailureNamed() throws Exception {
    try (TestCluster cluster = new TestCluster(folder)) {
      ExecutorExchange one = cluster.open("1");
      ExecutorExchange two = cluster.open("2");
      assertThatThrownBy(() -> one.calls().ask("2", bytes("too soon")))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("executor 2")
          .hasMessageContaining("this executor has no service");
      two.serve(
          request -> {
            String text = new String(request, StandardCharsets.UTF_8);
            return text.isEmpty()
                ? CompletableFuture.failedFuture(new IllegalStateException("nothing was asked"))
                : CompletableFuture.supplyAsync(() -> bytes(text + " is answered"));
          });
      assertThat(one.calls().ask("2", bytes("this"))).isEqualTo(bytes("this is answered"));
      assertThatThrownBy(() -> one.calls().ask("2", bytes("")))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("nothing was asked");
      assertThat(one.calls().ask("2", bytes("more"))).isEqualTo(bytes("more is answered"));
    }
  }

  @Test
  void aSilentPeerTimesOut() throws Exception {
    try (TestCluster cluster = new TestCluster(folder).timeout(Duration.ofMillis(300))) {
      ExecutorExchange one = cluster.open("1");
      cluster.open("2").serve(request -> new CompletableFuture<>());
      assertThatThrownBy(() -> one.calls().ask("2", bytes("request")))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("executor 2")
          .hasMessageContaining("did not answer within");
    }
  }

  @Test
  void aClosedPeerIsNamed() throws Exception {
    try (TestCluster cluster = new TestCluster(folder)) {
      ExecutorExchange one = cluster.open("1");
      cluster.open("2").close();
      assertThatThrownBy(() -> one.calls().ask("2", bytes("request")))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("executor 2")
          .hasMessageContaining("did not answer");
    }
  }
}
