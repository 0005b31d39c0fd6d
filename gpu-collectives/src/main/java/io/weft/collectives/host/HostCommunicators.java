package io.weft.collectives.host;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;

/**
 * Creates communicators of the host implementation. All ranks load the items of the {@link
 * Preloader} before the communicator exists. Thread-safe.
 */
public final class HostCommunicators implements CommunicatorFactory {
  private final HostOptions options;
  private final Preloader preparation;

  /** A factory that uses these options for every communicator. */
  public HostCommunicators(HostOptions options) {
    this(options, Preloader.ofHost());
  }

  /**
   * A factory for gangs that load more items.
   *
   * @param preparation the items to load before a gang starts, those of {@link Preloader#ofHost}
   *     and more
   */
  public HostCommunicators(HostOptions options, Preloader preparation) {
    this.options = options;
    this.preparation = preparation;
  }

  @Override
  public Communicator create(Bootstrap bootstrap, CommunicatorOptions common) {
    return new HostSetup(bootstrap, common, options, preparation).create();
  }
}
