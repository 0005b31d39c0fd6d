package io.weft.collectives.host;

import io.weft.collectives.Broadcast;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.Gather;
import io.weft.collectives.Operation;
import io.weft.collectives.Receive;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.CollectivesContract;
import io.weft.collectives.contract.CommunicatorContract;
import io.weft.collectives.contract.FailureContract;
import io.weft.collectives.contract.HugeContract;
import io.weft.collectives.contract.PointToPointContract;
import io.weft.collectives.contract.RaggedContract;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests ranks that are each on their own host, connected only by sockets. */
class NetworkCommunicatorTest
    implements CollectivesContract,
        RaggedContract,
        PointToPointContract,
        FailureContract,
        HugeContract {
  @TempDir Path folder;

  @Override
  public CommunicatorFactory factory() {
    return Hosts.factory(folder, (rank, nranks) -> rank);
  }

  /** The first rank is done with the gather, and the second one waits in it for the third. */
  @Test
  void aRankThatAwaitsAPairAfterItsCollectivesIsNoMismatch() {
    try (RankGang gang = gang(3)) {
      gang.run(
          communicator -> {
            int rank = communicator.rank();
            TypedBuffer shared = CommunicatorContract.buffer(DataType.INT32, 8);
            TypedBuffer part = CommunicatorContract.filled(communicator, DataType.INT32, 4);
            TypedBuffer gathered = CommunicatorContract.buffer(DataType.INT32, rank == 1 ? 12 : 0);
            TypedBuffer message = CommunicatorContract.filled(communicator, DataType.INT32, 100);
            List<Operation> group = new ArrayList<>();
            group.add(new Broadcast(shared, shared, 0));
            group.add(new Gather(part, gathered, 1));
            if (rank == 0) {
              group.add(new Receive(message, 1));
            }
            if (rank == 2) {
              // Longer than the others wait before they ask each other.
              Awaitility.await().pollDelay(Duration.ofSeconds(1)).until(() -> true);
            }
            communicator.runGroup(group);
            if (rank == 1) {
              communicator.send(message, 0);
              Values.check("gathered", gathered, i -> Values.of((int) i / 4, i % 4));
            }
            if (rank == 0) {
              Values.check("from rank 1", message, i -> Values.of(1, i));
            }
          });
    }
  }
}
