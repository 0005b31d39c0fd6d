package io.weft.collectives.host;

import io.weft.collectives.CommunicatorFactory;
import java.nio.file.Path;

/** Simulates several hosts on one: ranks with different identities do not share memory. */
final class Hosts {
  private Hosts() {}

  /** The host that each rank is on. */
  interface Placement {
    int host(int rank, int nranks);
  }

  static CommunicatorFactory factory(Path folder, Placement placement) {
    return (bootstrap, options) -> {
      int host = placement.host(bootstrap.rank(), bootstrap.nranks());
      return new HostCommunicators(
              HostOptions.defaults()
                  .withFolder(folder.resolve("host-" + host))
                  .withHostIdentity("host-" + host))
          .create(bootstrap, options);
    };
  }
}
