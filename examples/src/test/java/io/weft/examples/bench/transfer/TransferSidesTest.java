package io.weft.examples.bench.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.peer.TransportMode;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Runs the processes of the benchmark briefly. */
class TransferSidesTest {
  @TempDir private Path work;
  @TempDir private Path memory;

  @ParameterizedTest
  @EnumSource(names = {"TCP", "SHM"})
  void blocksAreReadInEveryWay(TransportMode mode) throws Exception {
    PeerBlocks blocks = new PeerBlocks(1, 3, 5, 4096);
    try (PeerPair pair = PeerPair.start("pair", work, memory, mode, true)) {
      pair.write(blocks);
      assertThat(pair.readTogether(blocks).seconds()).isPositive();
      assertThat(pair.readOneByOne(blocks).cpuSeconds()).isPositive();
      assertThat(pair.readPlain(3 << 20).seconds()).isPositive();
      assertThat(pair.readPlainMemory(300 << 20).seconds()).isPositive();
      assertThat(pair.readAgain(blocks, 20).getTotalCount()).isEqualTo(20);
      assertThat(pair.readPlainAgain(1024, 20).getTotalCount()).isEqualTo(20);
    }
  }

  @Test
  void missingBlocksAreAnError() throws Exception {
    try (PeerPair pair = PeerPair.start("pair", work, memory, TransportMode.TCP, true)) {
      assertThatThrownBy(() -> pair.readTogether(new PeerBlocks(7, 1, 1, 8)))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("failed");
    }
  }

  @Test
  void transfersFromADeadPeerFail() throws Exception {
    TransferBench.Options options = new TransferBench.Options(Set.of(Row.ABORT), 1, 1);
    TransferReport.RowResult row =
        new AbortRow(options, work, memory, Duration.ofSeconds(10)).measure();
    assertThat(row.sides()).hasSize(3);
    // Only the deadline reveals a suspended process.
    assertThat(row.sides().get(2).seconds().min()).isGreaterThan(1);
  }
}
