package io.weft.collectives.host;

import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.contract.CollectivesContract;
import io.weft.collectives.contract.FailureContract;
import io.weft.collectives.contract.HugeContract;
import io.weft.collectives.contract.PointToPointContract;
import io.weft.collectives.contract.RaggedContract;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests two hosts: 1 and 1, 2 and 1, 2 and 2, 2 and 3, 3 and 5 ranks, in consecutive order as
 * launchers place them.
 */
class MixedCommunicatorTest
    implements CollectivesContract,
        RaggedContract,
        PointToPointContract,
        FailureContract,
        HugeContract {
  @TempDir Path folder;

  @Override
  public CommunicatorFactory factory() {
    return Hosts.factory(folder, (rank, nranks) -> rank < firstHost(nranks) ? 0 : 1);
  }

  private static int firstHost(int nranks) {
    return nranks == 3 ? 2 : nranks == 8 ? 3 : (nranks + 1) / 2 - nranks % 2;
  }
}
