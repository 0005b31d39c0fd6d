package io.weft.collectives.host;

import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.contract.CollectivesContract;
import io.weft.collectives.contract.FailureContract;
import io.weft.collectives.contract.HugeContract;
import io.weft.collectives.contract.PointToPointContract;
import io.weft.collectives.contract.RaggedContract;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;

/** Tests ranks on one host. */
class SharedMemoryCommunicatorTest
    implements CollectivesContract,
        RaggedContract,
        PointToPointContract,
        FailureContract,
        HugeContract {
  @TempDir Path folder;

  @Override
  public CommunicatorFactory factory() {
    return new HostCommunicators(HostOptions.defaults().withFolder(folder.resolve("shm")));
  }
}
