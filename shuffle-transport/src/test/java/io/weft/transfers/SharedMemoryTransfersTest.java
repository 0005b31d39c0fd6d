package io.weft.transfers;

import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;

/** Executors that share memory. */
class SharedMemoryTransfersTest extends TransferContract {
  @Override
  Executors.Communicators communicators() {
    return (folder, executor) ->
        new HostCommunicators(HostOptions.defaults().withFolder(folder.resolve("shared")));
  }
}
