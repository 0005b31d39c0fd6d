package io.weft.collectives.nccl;

import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.contract.CollectivesContract;
import io.weft.collectives.contract.FailureContract;
import io.weft.collectives.contract.HugeContract;
import io.weft.collectives.contract.PointToPointContract;
import io.weft.collectives.contract.RaggedContract;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.library.DoubleLibraries;
import io.weft.device.library.UsesDoubles;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;

/** The whole contract over NCCL, of which the double notes every rule that is broken. */
@UsesDoubles
class NcclCommunicatorTest
    implements CollectivesContract,
        RaggedContract,
        PointToPointContract,
        FailureContract,
        HugeContract {
  @TempDir Path folder;

  @Override
  public CommunicatorFactory factory() {
    return GpuDoubles.factory(new HostCommunicators(HostOptions.defaults().withFolder(folder)));
  }

  @AfterEach
  void nothingIsLeftBehind() {
    GpuDoubles.closeDevices();
    DoubleLibraries.assertClean();
  }
}
