package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.contract.CollectivesContract;
import io.weft.collectives.contract.FailureContract;
import io.weft.collectives.contract.HugeContract;
import io.weft.collectives.contract.PointToPointContract;
import io.weft.collectives.contract.RaggedContract;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.DoubleLibraries;
import io.weft.testgpus.UsesGpu;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** The whole contract over NCCL. The double reports every violated rule. */
@UsesGpu
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

  @BeforeEach
  void forgetEarlierCopies() {
    DoubleLibraries.cudaControls().cudaDoublePageableCopies();
  }

  /**
   * Host buffers go through pinned memory, because the driver's own copy may wait for a dead peer.
   */
  @AfterEach
  void nothingIsLeaked() {
    assertThat(DoubleLibraries.cudaControls().cudaDoublePageableCopies()).isZero();
    GpuDoubles.closeDevices();
    DoubleLibraries.assertClean();
  }
}
