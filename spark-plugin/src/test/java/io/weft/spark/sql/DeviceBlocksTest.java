package io.weft.spark.sql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.device.HostReadClient;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.config.SurviveSettings;
import io.weft.spark.gpu.RemoteDeviceOutputs;
import io.weft.spark.shuffle.ShuffleBlocks;
import io.weft.spark.sql.DeviceShuffleReader.DeviceBlocks;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.Test;
import scala.Option;

class DeviceBlocksTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);
  private static final BlockRequest OWN = request("1", 10);
  private static final BlockRequest OWN_ON_HOST = request("1", 11);
  private static final BlockRequest THERE = request("2", 20);
  private static final BlockRequest THERE_ON_HOST = request("2", 21);
  private static final BlockRequest OTHER = request("3", 30);

  private static BlockRequest request(String executor, long map) {
    return new BlockRequest(executor, new BlockKey(5, map), (int) map, 2, 3, 100);
  }

  private static ShuffleBlocks blocks() {
    return new ShuffleBlocks(
        List.of(OWN, OWN_ON_HOST, THERE, THERE_ON_HOST, OTHER),
        Map.of("1", location("1"), "2", location("2"), "3", location("3")));
  }

  private static BlockManagerId location(String executor) {
    return BlockManagerId.apply(executor, "host" + executor, 7000, Option.empty());
  }

  private static DeviceBlocks of(RemoteDeviceOutputs others) {
    return DeviceBlocks.of(blocks(), "1", OWN.key()::equals, others, () -> {});
  }

  @Test
  void blocksAreSplitByWhereTheirExecutorsHaveThem() {
    HostReadClient client =
        new HostReadClient(
            (executor, message) -> executor.equals("2") ? new byte[] {1, 0} : new byte[] {0}, "1");
    try (RemoteDeviceOutputs others = new RemoteDeviceOutputs(client, TIMEOUT)) {
      DeviceBlocks split = of(others);
      assertThat(split.onDevices()).isEqualTo(Map.of("1", List.of(OWN), "2", List.of(THERE)));
      assertThat(split.onHosts().requests()).containsExactly(OWN_ON_HOST, THERE_ON_HOST, OTHER);
    }
  }

  /** No executor answers for the place of copies. */
  @Test
  void copiesAreReadOnHostsWithoutAQuestion() {
    String place = SurviveSettings.placeId() + "/7";
    BlockRequest copy = request(place, 40);
    HostReadClient client =
        new HostReadClient(
            (executor, message) -> {
              if (executor.equals(place)) {
                throw new IOException("no executor has this id");
              }
              return new byte[] {1};
            },
            "1");
    ShuffleBlocks blocks =
        new ShuffleBlocks(
            List.of(OTHER, copy), Map.of("3", location("3"), place, SurviveSettings.place("7")));
    try (RemoteDeviceOutputs others = new RemoteDeviceOutputs(client, TIMEOUT)) {
      DeviceBlocks split = DeviceBlocks.of(blocks, "1", key -> false, others, () -> {});
      assertThat(split.onDevices()).isEqualTo(Map.of("3", List.of(OTHER)));
      assertThat(split.onHosts().requests()).containsExactly(copy);
    }
  }

  /**
   * Without the failure, the host of executor 3 would have no block, and the reason would be lost.
   */
  @Test
  void anExecutorThatDoesNotAnswerIsAFetchFailureWithTheReason() {
    HostReadClient client =
        new HostReadClient(
            (executor, message) -> {
              if (executor.equals("3")) {
                throw new IOException("3 is in a long pause");
              }
              return new byte[] {1, 0};
            },
            "1");
    try (RemoteDeviceOutputs others = new RemoteDeviceOutputs(client, TIMEOUT)) {
      assertThatThrownBy(() -> of(others))
          .isInstanceOfSatisfying(
              FetchFailedException.class,
              e -> assertThat(e.toTaskFailedReason().toErrorString()).contains("host3"))
          .hasMessageContaining("executor 3 does not report which map outputs are on its GPU")
          .hasMessageContaining("3 is in a long pause");
    }
  }
}
