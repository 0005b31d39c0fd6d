package io.weft.spark.transfers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.peer.PeerAddress;
import io.weft.transfers.DeviceId;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Which addresses of executors are kept. */
class ExecutorDirectoryTest {
  private final Map<String, PeerAddress> running = new HashMap<>();
  private final AtomicInteger asked = new AtomicInteger();
  private final ExecutorDirectory directory =
      new ExecutorDirectory(
          address("own"),
          ids -> {
            asked.incrementAndGet();
            Map<String, PeerAddress> found = new HashMap<>(running);
            found.keySet().retainAll(ids);
            return found;
          });

  private static PeerAddress address(String id) {
    return new PeerAddress(id, "i-" + id, "host", 1, "/folder", "token", "boot", "1");
  }

  private static DeviceId host(String id) {
    return new DeviceId(id, ExecutorDirectory.HOST);
  }

  @Test
  void anExecutorIsKeptUntilItHasEnded() throws IOException {
    running.put("2", address("2"));
    assertThat(directory.member(host("2")).incarnation()).isEqualTo("i-2");
    assertThat(directory.member(host("2")).incarnation()).isEqualTo("i-2");
    assertThat(asked).hasValue(1);
    running.clear();
    assertThat(directory.forget("2")).isEqualTo("i-2");
    assertThat(directory.forget("2")).isNull();
    assertThatThrownBy(() -> directory.member(host("2")))
        .hasMessage("executor 2 has ended: it has no address");
    assertThat(directory.forget("3")).as("never looked up").isNull();
  }
}
