package io.weft.shuffle.peer;

import io.weft.shuffle.peer.PathRules.PathEnd;
import java.io.IOException;
import java.io.Serializable;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The address that an executor announces: how to reach its blocks through shared memory or TCP, and
 * its GPU.
 *
 * @param executorId Spark's executor id
 * @param incarnation 8 hex digits, different for each start of an executor
 * @param host name or address that peers connect to
 * @param port of the block server
 * @param folder the executor's folder in shared memory, an absolute path on its host
 * @param token contents of the token file in {@code folder}
 * @param bootId boot id of its kernel; equal for executors on one kernel
 * @param version of Weft that it runs
 * @param gpu for arrays, or the reason for having none
 */
public record PeerAddress(
    String executorId,
    String incarnation,
    String host,
    int port,
    String folder,
    String token,
    String bootId,
    String version,
    GpuEnd gpu)
    implements Serializable {
  public PeerAddress {
    Objects.requireNonNull(executorId, "executorId");
    Objects.requireNonNull(incarnation, "incarnation");
    Objects.requireNonNull(host, "host");
    Objects.requireNonNull(folder, "folder");
    Objects.requireNonNull(token, "token");
    Objects.requireNonNull(bootId, "bootId");
    Objects.requireNonNull(version, "version");
    // An executor with another version of Weft does not announce a GPU.
    gpu = gpu == null ? GpuEnd.without("its executor announced no GPU") : gpu;
    if (port < 0 || port > 65535) {
      throw new IllegalArgumentException("port of executor " + executorId + ": " + port);
    }
  }

  /** Creates the address of an executor without a GPU. */
  public PeerAddress(
      String executorId,
      String incarnation,
      String host,
      int port,
      String folder,
      String token,
      String bootId,
      String version) {
    this(executorId, incarnation, host, port, folder, token, bootId, version, null);
  }

  /** Returns this address with a GPU, or with the reason for having none. */
  public PeerAddress withGpu(GpuEnd found) {
    return new PeerAddress(
        executorId, incarnation, host, port, folder, token, bootId, version, found);
  }

  /** The properties that the choice of a path depends on. */
  public PathEnd pathEnd() {
    return new PathEnd(bootId, gpu);
  }

  /** Omits the token, which is a secret. */
  @Override
  public String toString() {
    return "executor "
        + executorId
        + " ("
        + host
        + ":"
        + port
        + ", incarnation "
        + incarnation
        + ")";
  }

  /**
   * Caches the addresses of executors from a directory, until an address is forgotten. Thread-safe.
   */
  public static final class KnownPeers {
    private final PeerDirectory directory;
    private final ConcurrentHashMap<String, PeerAddress> known = new ConcurrentHashMap<>();

    /** Starts without addresses. */
    public KnownPeers(PeerDirectory directory) {
      this.directory = directory;
    }

    /**
     * Returns the address of an executor.
     *
     * @throws IOException if the directory does not know it or cannot be reached
     */
    public PeerAddress find(String executorId) throws IOException {
      PeerAddress address = known.get(executorId);
      if (address == null) {
        address = directory.lookup(executorId);
        known.put(executorId, address);
      }
      return address;
    }

    /** Forgets an address that does not answer, so that the directory is queried again. */
    public void forget(PeerAddress address) {
      known.remove(address.executorId(), address);
    }
  }
}
