package io.weft.collectives.host;

import io.weft.device.probe.Capabilities;
import io.weft.device.probe.CapabilityProbe;
import io.weft.device.probe.Choice;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Options of the host implementation beyond {@link io.weft.collectives.CommunicatorOptions}.
 *
 * @param folder where segments are created, on a memory file system if there is one; the same on
 *     all ranks of a host
 * @param hostIdentity two ranks with the same one try to share memory; empty for the identity of
 *     the running kernel
 * @param bindHost the address at which ranks of other hosts reach this one
 * @param network whether ranks may be on different hosts; without it they have to share memory
 * @param sizes the sizes of the buffers in shared memory; the same on all ranks
 * @param machine the capabilities of this machine, which decide the paths
 */
public record HostOptions(
    Path folder,
    Optional<String> hostIdentity,
    String bindHost,
    boolean network,
    BufferSizes sizes,
    Capabilities machine) {
  /** The options for this machine; see {@link #on}. */
  public static HostOptions defaults() {
    return on(CapabilityProbe.thisMachine());
  }

  /**
   * The options for a machine. The folder is below its shared-memory folder or, if it has none,
   * below the temporary folder. The bind host is the loopback address, so ranks are on this machine
   * only until another is set.
   */
  public static HostOptions on(Capabilities machine) {
    Path parent =
        machine.withinHost().isPreferred()
            ? machine.sharedFolder()
            : Path.of(System.getProperty("java.io.tmpdir"));
    return new HostOptions(
        parent.resolve("weft-" + System.getProperty("user.name")),
        Optional.empty(),
        "127.0.0.1",
        true,
        BufferSizes.DEFAULT,
        machine);
  }

  /** Why ranks on several hosts cannot be connected from here; empty when they can. */
  Optional<String> networkRefusal() {
    if (!network) {
      return Optional.of("the network is disabled");
    }
    Choice between = machine.betweenHosts();
    return between.isPreferred() || isLoopback()
        ? Optional.empty()
        : Optional.of("there is no path to other hosts: " + between);
  }

  /** Whether all ranks are on this machine, for example in several containers. */
  private boolean isLoopback() {
    try {
      return InetAddress.getByName(bindHost).isLoopbackAddress();
    } catch (UnknownHostException e) {
      return false;
    }
  }

  public HostOptions withFolder(Path other) {
    return new HostOptions(other, hostIdentity, bindHost, network, sizes, machine);
  }

  /** Sets the identity, for tests and containers: ranks with different identities use sockets. */
  public HostOptions withHostIdentity(String identity) {
    return new HostOptions(folder, Optional.of(identity), bindHost, network, sizes, machine);
  }

  public HostOptions withBindHost(String host) {
    return new HostOptions(folder, hostIdentity, host, network, sizes, machine);
  }

  public HostOptions withNetwork(boolean allowed) {
    return new HostOptions(folder, hostIdentity, bindHost, allowed, sizes, machine);
  }

  public HostOptions withSizes(BufferSizes other) {
    return new HostOptions(folder, hostIdentity, bindHost, network, other, machine);
  }
}
