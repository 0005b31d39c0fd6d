package io.weft.transfers;

import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;

/** Executors on separate hosts, connected by TCP. */
class NetworkTransfersTest extends TransferContract {
  @Override
  Executors.Communicators communicators() {
    return (folder, executor) ->
        new HostCommunicators(
            HostOptions.defaults()
                .withFolder(folder.resolve("host-" + executor))
                .withHostIdentity("host-" + executor));
  }
}
