package io.weft.collectives.host;

import io.weft.collectives.symmetric.SymmetricOptions;
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
 * @param network whether ranks may be on different hosts; without it they must share memory
 * @param kernelCopy whether large operations read the private buffers of other processes by the
 *     kernel; they do not if a rank of the host has {@link KernelCopy#NEVER}
 * @param sizes the sizes of the buffers in shared memory; the same on all ranks
 * @param symmetric of the communicators' symmetric buffers; empty for memory in the folder
 * @param machine the capabilities of this machine, which decide the paths
 */
public record HostOptions(
    Path folder,
    Optional<String> hostIdentity,
    String bindHost,
    boolean network,
    KernelCopy kernelCopy,
    BufferSizes sizes,
    Optional<SymmetricOptions> symmetric,
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
        KernelCopy.MEASURED,
        BufferSizes.DEFAULT,
        Optional.empty(),
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
    return new HostOptions(
        other, hostIdentity, bindHost, network, kernelCopy, sizes, symmetric, machine);
  }

  /** Sets the identity, for tests and containers: ranks with different identities use sockets. */
  public HostOptions withHostIdentity(String identity) {
    return new HostOptions(
        folder, Optional.of(identity), bindHost, network, kernelCopy, sizes, symmetric, machine);
  }

  public HostOptions withBindHost(String host) {
    return new HostOptions(
        folder, hostIdentity, host, network, kernelCopy, sizes, symmetric, machine);
  }

  public HostOptions withNetwork(boolean allowed) {
    return new HostOptions(
        folder, hostIdentity, bindHost, allowed, kernelCopy, sizes, symmetric, machine);
  }

  public HostOptions withKernelCopy(KernelCopy other) {
    return new HostOptions(
        folder, hostIdentity, bindHost, network, other, sizes, symmetric, machine);
  }

  public HostOptions withSizes(BufferSizes other) {
    return new HostOptions(
        folder, hostIdentity, bindHost, network, kernelCopy, other, symmetric, machine);
  }

  public HostOptions withSymmetric(SymmetricOptions other) {
    return new HostOptions(
        folder, hostIdentity, bindHost, network, kernelCopy, sizes, Optional.of(other), machine);
  }

  SymmetricOptions symmetricOptions() {
    return symmetric.orElseGet(() -> SymmetricOptions.in(folder));
  }

  /**
   * When ranks of one host read private buffers of other processes by the kernel, where it permits
   * that.
   */
  public enum KernelCopy {
    /** Never. */
    NEVER,
    /**
     * For large operations. Two ranks measure whether it is faster than shared memory for an
     * all-gather, all-to-all or ragged all-to-all.
     */
    MEASURED,
    /** For large operations, without a measurement if all ranks have this option. */
    ALWAYS
  }

  /**
   * The amount of shared memory that each rank reserves for a communicator, besides windows.
   *
   * @param slotBytes the limit of a rank's deposit for a one-shot operation; two slots are reserved
   * @param stageBytes one chunk of a large operation on private buffers; three are reserved
   * @param ringBytes limit of the bytes in flight from one rank to another; a power of two, two
   *     rings are reserved per peer on the host
   */
  public record BufferSizes(int slotBytes, int stageBytes, int ringBytes) {
    /** Measured on two cores with 2 MiB of second-level cache each. */
    public static final BufferSizes DEFAULT = new BufferSizes(64 << 10, 256 << 10, 64 << 10);

    private static final int LINE = 128;

    /** Bytes of the widest element. */
    private static final int WIDEST = 8;

    public BufferSizes {
      checkMultiple("slotBytes", slotBytes);
      checkMultiple("stageBytes", stageBytes);
      checkMultiple("ringBytes", ringBytes);
      if (Integer.bitCount(ringBytes) != 1) {
        throw new IllegalArgumentException("ringBytes " + ringBytes + " is not a power of two");
      }
    }

    /**
     * These sizes, with stages that hold at least one element of every rank. A reduce-scatter
     * stages the parts of all ranks side by side.
     */
    BufferSizes forRanks(int ranks) {
      int least = (ranks * WIDEST + LINE - 1) / LINE * LINE;
      return new BufferSizes(slotBytes, Math.max(stageBytes, least), ringBytes);
    }

    private static void checkMultiple(String name, int value) {
      if (value < LINE || value % LINE != 0 || value > 64 << 20) {
        throw new IllegalArgumentException(
            name + " " + value + " is not a multiple of " + LINE + " up to 64 MiB");
      }
    }
  }
}
