package io.weft.collectives.host;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.bootstrap.Preparation;

/**
 * Makes communicators of the host implementation. Before a communicator is there all its ranks have
 * loaded what the {@link Preparation} says. Thread-safe.
 */
public final class HostCommunicators implements CommunicatorFactory {
  private final HostOptions options;
  private final Preparation preparation;

  /** A factory with these options for every communicator. */
  public HostCommunicators(HostOptions options) {
    this(options, Preparation.ofHost());
  }

  /**
   * The same for gangs that need more.
   *
   * @param preparation what to load before a gang starts, {@link Preparation#ofHost} and more
   */
  public HostCommunicators(HostOptions options, Preparation preparation) {
    this.options = options;
    this.preparation = preparation;
  }

  @Override
  public Communicator create(Bootstrap bootstrap, CommunicatorOptions common) {
    return new HostSetup(bootstrap, common, options, preparation).create();
  }
}
