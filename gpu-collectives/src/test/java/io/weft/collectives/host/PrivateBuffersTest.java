package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.SymmetricBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.logging.CapturedLogs;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Symmetric buffers of ranks on several hosts. */
class PrivateBuffersTest {
  @TempDir Path folder;

  /** Ranks 0 and 1 on one host, rank 2 on another. */
  private RankGang gang() {
    List<CommunicatorFactory> factories =
        IntStream.range(0, 3)
            .mapToObj(
                rank ->
                    HostOptions.defaults()
                        .withFolder(folder.resolve("host-" + rank / 2))
                        .withHostIdentity("host-" + rank / 2))
            .<CommunicatorFactory>map(HostCommunicators::new)
            .toList();
    return RankGang.open(factories, Duration.ofSeconds(60));
  }

  @Test
  void collectivesAndBarriersWorkAndTheReasonIsLoggedOnce() {
    CapturedLogs.clear();
    HostSymmetric.LOGGED.clear();
    try (RankGang gang = gang()) {
      gang.run(
          communicator -> {
            for (int i = 0; i < 3; i++) {
              SymmetricBuffer buffer = communicator.symmetric(DataType.FLOAT32, 5000);
              assertThat(buffer.whyPrivate().orElseThrow()).contains("[[0, 1], [2]]");
              Values.check("zeros", buffer.elements(), index -> 0);
              Values.fill(buffer.elements(), index -> communicator.rank());
              communicator.allReduce(buffer.elements(), ReduceOp.SUM);
              Values.check("sum", buffer.elements(), index -> 3);
              if (communicator.rank() != 1) {
                buffer.barrier(2, 0);
              }
              buffer.barrier();
              buffer.close();
              assertThatThrownBy(() -> communicator.allReduce(buffer.elements(), ReduceOp.SUM))
                  .hasMessageContaining("the buffer is closed");
            }
          });
    }
    assertThat(CapturedLogs.lines())
        .filteredOn(line -> line.contains("private memory instead of symmetric buffers"))
        .hasSize(1);
  }

  @Test
  void differentRequestsAreNamed() {
    try (RankGang gang = gang()) {
      gang.run(
          communicator -> {
            int count = communicator.rank() == 2 ? 7 : 8;
            assertThatThrownBy(() -> communicator.symmetric(DataType.INT16, count))
                .isInstanceOf(CollectiveException.class)
                .hasMessageContaining("rank 2 for another than rank 0");
            SymmetricBuffer empty = communicator.symmetric(DataType.INT16, 0);
            assertThat(empty.elements().count()).isZero();
            assertThatThrownBy(() -> empty.signal(0, 0, 1))
                .hasMessageContaining("no signal on rank " + communicator.rank());
          });
    }
  }
}
