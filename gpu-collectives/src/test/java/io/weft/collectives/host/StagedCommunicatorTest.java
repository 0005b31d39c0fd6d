package io.weft.collectives.host;

import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.contract.CollectivesContract;
import io.weft.collectives.contract.FailureContract;
import io.weft.collectives.contract.RaggedContract;
import io.weft.collectives.host.HostOptions.KernelCopy;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;

/** Tests ranks on one host that may not read each other's memory by the kernel. */
class StagedCommunicatorTest implements CollectivesContract, RaggedContract, FailureContract {
  @TempDir Path folder;

  @Override
  public CommunicatorFactory factory() {
    return new HostCommunicators(
        HostOptions.defaults().withFolder(folder.resolve("shm")).withKernelCopy(KernelCopy.NEVER));
  }
}
