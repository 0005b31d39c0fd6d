package io.weft.collectives.host;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/**
 * What the host implementation wants to know beyond {@link
 * io.weft.collectives.CommunicatorOptions}.
 *
 * @param folder where segments are created, on a memory file system if there is one; the same on
 *     all ranks of a host
 * @param hostIdentity two ranks with the same one try to share memory; empty for the identity of
 *     the running kernel
 * @param bindHost the address that ranks of other hosts reach this one by
 * @param network whether ranks may be on different hosts; without it they have to share memory
 * @param sizes how large the buffers in shared memory are; the same on all ranks
 */
public record HostOptions(
    Path folder,
    Optional<String> hostIdentity,
    String bindHost,
    boolean network,
    BufferSizes sizes) {
  private static final Path SHARED_MEMORY = Path.of("/dev/shm");

  /** Below /dev/shm (or, where there is none, the temporary folder), one host or this machine's. */
  public static HostOptions defaults() {
    return new HostOptions(
        defaultFolder(), Optional.empty(), "127.0.0.1", true, BufferSizes.DEFAULT);
  }

  private static Path defaultFolder() {
    Path parent =
        Files.isDirectory(SHARED_MEMORY) && Files.isWritable(SHARED_MEMORY)
            ? SHARED_MEMORY
            : Path.of(System.getProperty("java.io.tmpdir"));
    return parent.resolve("weft-" + System.getProperty("user.name"));
  }

  public HostOptions withFolder(Path other) {
    return new HostOptions(other, hostIdentity, bindHost, network, sizes);
  }

  /** For tests and containers: ranks with different identities use sockets. */
  public HostOptions withHostIdentity(String identity) {
    return new HostOptions(folder, Optional.of(identity), bindHost, network, sizes);
  }

  public HostOptions withBindHost(String host) {
    return new HostOptions(folder, hostIdentity, host, network, sizes);
  }

  public HostOptions withNetwork(boolean allowed) {
    return new HostOptions(folder, hostIdentity, bindHost, allowed, sizes);
  }

  public HostOptions withSizes(BufferSizes other) {
    return new HostOptions(folder, hostIdentity, bindHost, network, other);
  }
}
