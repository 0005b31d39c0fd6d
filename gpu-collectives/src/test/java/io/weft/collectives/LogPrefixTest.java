package io.weft.collectives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.CommunicatorOptions.LogPrefix;
import io.weft.collectives.bootstrap.ThreadBootstrap;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostLane;
import io.weft.device.Lane;
import io.weft.logging.CapturedLogs;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LogPrefixTest {
  private static final LogPrefix PREFIX = new LogPrefix("7", "host", 3, 1);

  @Test
  void prefixNamesExecutorDeviceStageAndRank() {
    UniqueId id = UniqueId.create();
    assertThat(PREFIX.of(1, 4, id))
        .isEqualTo("[executor 7 host stage 3.1 rank 1/4 of " + id + "] ");
    assertThat(LogPrefix.NONE.of(0, 2, id)).isEqualTo("[rank 0/2 of " + id + "] ");
    assertThat(PREFIX.ofLane()).isEqualTo("[executor 7 host stage 3.1] ");
    assertThat(LogPrefix.NONE.ofLane()).isEmpty();
  }

  @Test
  void logsOfLanesCarryIt() {
    CapturedLogs.clear();
    Lane lane = HostLane.open("prefixed", Duration.ofSeconds(30), PREFIX.ofLane());
    Event failing =
        lane.submit(
            "bad work",
            () -> {
              throw new IllegalStateException("the data is bad");
            });
    assertThatThrownBy(() -> failing.await(Deadline.after(Duration.ofSeconds(30))))
        .hasMessageContaining("the data is bad");
    lane.close();
    assertThat(CapturedLogs.lines())
        .anySatisfy(
            line ->
                assertThat(line)
                    .contains("[executor 7 host stage 3.1] lane prefixed: bad work failed")
                    .contains("the data is bad"));
    assertThatThrownBy(lane::record).hasMessageStartingWith("[executor 7 host stage 3.1] ");
  }

  @Test
  void logsAndAbortsOfCommunicatorsCarryIt(@TempDir Path folder) {
    CapturedLogs.clear();
    CommunicatorFactory factory = new HostCommunicators(HostOptions.defaults().withFolder(folder));
    try (Bootstrap end = ThreadBootstrap.open(1).get(0);
        Communicator communicator =
            factory.create(end, CommunicatorOptions.DEFAULT.withPrefix(PREFIX))) {
      assertThat(communicator)
          .asString()
          .isEqualTo("[executor 7 host stage 3.1] rank 0/1 of communicator " + communicator.id());
      communicator.abort("enough");
      String prefix = "[executor 7 host stage 3.1 rank 0/1 of " + communicator.id() + "] ";
      assertThat(communicator.failure().orElseThrow()).hasMessageStartingWith(prefix);
      assertThat(CapturedLogs.lines())
          .anySatisfy(line -> assertThat(line).startsWith("INFO " + prefix).contains("enough"));
    }
  }
}
