package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.contract.RaggedContract;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.DoubleLibraries;
import io.weft.testgpus.UsesGpu;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** The contract of ragged all-to-alls that the devices write directly. */
@UsesGpu
class SharedRaggedTest implements RaggedContract {
  @TempDir Path folder;

  @Override
  public CommunicatorFactory factory() {
    return SharingCommunicators.of(
        GpuDoubles.factory(new HostCommunicators(HostOptions.defaults().withFolder(folder))));
  }

  @BeforeEach
  void forgetEarlierWork() {
    DoubleLibraries.ncclControls().ncclDoubleLaunches();
  }

  @AfterEach
  void nothingIsLeakedAndNcclIsNotUsed() {
    assertThat(DoubleLibraries.ncclControls().ncclDoubleLaunches()).isZero();
    GpuDoubles.closeDevices();
    DoubleLibraries.assertClean();
  }
}
