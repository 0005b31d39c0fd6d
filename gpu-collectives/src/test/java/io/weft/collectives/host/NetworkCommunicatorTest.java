package io.weft.collectives.host;

import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.contract.CollectivesContract;
import io.weft.collectives.contract.FailureContract;
import io.weft.collectives.contract.HugeContract;
import io.weft.collectives.contract.PointToPointContract;
import io.weft.collectives.contract.RaggedContract;
import java.nio.file.Path;
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
}
