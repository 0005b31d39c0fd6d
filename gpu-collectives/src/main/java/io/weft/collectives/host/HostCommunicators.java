package io.weft.collectives.host;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;

/** Makes communicators of the host implementation. Immutable, thread-safe. */
public final class HostCommunicators implements CommunicatorFactory {
  private final HostOptions options;

  /** A factory with these options for every communicator. */
  public HostCommunicators(HostOptions options) {
    this.options = options;
  }

  @Override
  public Communicator create(Bootstrap bootstrap, CommunicatorOptions common) {
    return new HostSetup(bootstrap, common, options).create();
  }
}
