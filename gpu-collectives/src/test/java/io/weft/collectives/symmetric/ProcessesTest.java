package io.weft.collectives.symmetric;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.UniqueId;
import io.weft.collectives.contract.Values;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProcessesTest {
  @TempDir Path folder;

  private Process startPeer(UniqueId id) throws IOException {
    return new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Xmx64m",
            "-cp",
            System.getProperty("java.class.path"),
            PeerProcess.class.getName(),
            folder.toString(),
            id.encode())
        .redirectErrorStream(true)
        .redirectOutput(new File(folder.toFile(), "peer.log"))
        .start();
  }

  /** Two JVMs exchange data at the same offsets. Then one ends without closing and is named. */
  @Test
  void processesExchangeThroughWindowsAndADeadOneIsNamed() throws Exception {
    UniqueId id = UniqueId.create();
    Process peer = startPeer(id);
    try (Communicator communicator = PeerProcess.communicator(folder, id, 0);
        SymmetricArena arena = SymmetricArena.open(communicator, PeerProcess.options(folder))) {
      Window window = arena.window(4L * PeerProcess.COUNT);
      SignalBarrier barrier = SignalBarrier.open(arena);
      play(window);
      barrier.await(Gangs.soon());
      CollectiveException failure =
          catchThrowableOfType(
              CollectiveException.class,
              () -> window.await(1, 0, PeerProcess.ROUNDS + 1, Gangs.soon()));
      assertThat(failure.kind()).as(failure.getMessage()).isEqualTo(Kind.DEAD);
      assertThat(failure.ranks()).containsExactly(1);
      assertThat(failure).hasMessageContaining("rank 0 waited for rank 1");
    } finally {
      assertThat(peer.waitFor(60, TimeUnit.SECONDS)).isTrue();
    }
  }

  private static void play(Window window) {
    TypedBuffer mine =
        TypedBuffer.wrap(ByteBuffer.allocateDirect(4 * PeerProcess.COUNT), DataType.INT32);
    for (int round = 1; round <= PeerProcess.ROUNDS; round++) {
      int now = round;
      Values.fill(mine, index -> index * 3 + now);
      window.put(mine, 1, 0);
      window.signal(1, 0, round);
      window.await(1, 0, round, Gangs.soon());
      Values.check("answer " + round, window.buffer(DataType.INT32), index -> index * 3 + now + 1);
    }
  }
}
