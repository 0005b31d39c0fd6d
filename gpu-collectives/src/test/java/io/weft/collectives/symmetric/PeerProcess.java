package io.weft.collectives.symmetric;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.UniqueId;
import io.weft.collectives.bootstrap.FileBootstrap;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;

/** Rank 1 in its own process: answers the data that rank 0 puts, then ends without closing. */
final class PeerProcess {
  static final int COUNT = 1000;
  static final int ROUNDS = 200;

  private PeerProcess() {}

  /** Arguments: folder, unique id. */
  public static void main(String[] arguments) throws IOException {
    Path folder = Path.of(arguments[0]);
    Communicator communicator = communicator(folder, UniqueId.decode(arguments[1]), 1);
    SymmetricArena arena = SymmetricArena.open(communicator, options(folder));
    Window window = arena.window(4L * COUNT);
    SignalBarrier barrier = SignalBarrier.open(arena);
    answer(window);
    barrier.await(Gangs.soon());
    Runtime.getRuntime().halt(0);
  }

  static Communicator communicator(Path folder, UniqueId id, int rank) throws IOException {
    try (Bootstrap end = FileBootstrap.open(folder, id, rank, 2)) {
      return new HostCommunicators(HostOptions.defaults().withFolder(folder.resolve("host")))
          .create(end, CommunicatorOptions.DEFAULT.withTimeout(Duration.ofSeconds(60)));
    }
  }

  static SymmetricOptions options(Path folder) {
    return SymmetricOptions.in(folder.resolve("symmetric")).withSegmentBytes(1 << 20);
  }

  /** Adds one to the data that rank 0 has put here and sends it back, in each round. */
  private static void answer(Window window) {
    TypedBuffer mine = window.buffer(DataType.INT32);
    for (int round = 1; round <= ROUNDS; round++) {
      window.await(0, 0, round, Gangs.soon());
      for (int i = 0; i < COUNT; i++) {
        Values.put(mine, i, Values.get(mine, i) + 1);
      }
      window.put(mine, 0, 0);
      window.signal(0, 0, round);
    }
  }
}
