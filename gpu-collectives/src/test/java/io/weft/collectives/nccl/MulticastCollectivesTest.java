package io.weft.collectives.nccl;

import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.contract.ReplicationContract;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.DoubleLibraries;
import io.weft.device.UsesDoubles;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** The contract of all-gathers and broadcasts that devices write by multicast. */
@UsesDoubles
class MulticastCollectivesTest implements ReplicationContract {
  @TempDir Path folder;

  @Override
  public CommunicatorFactory factory() {
    return MulticastCommunicators.of(
        GpuDoubles.factory(new HostCommunicators(HostOptions.defaults().withFolder(folder))));
  }

  @BeforeEach
  void allDevicesHaveIt() {
    DoubleLibraries.cuda();
    DoubleLibraries.cudaControls().cudaDoubleMulticast(0xff);
  }

  @AfterEach
  void nothingIsLeaked() {
    DoubleLibraries.cudaControls().cudaDoubleMulticast(0x55);
    GpuDoubles.closeDevices();
    DoubleLibraries.assertClean();
  }
}
