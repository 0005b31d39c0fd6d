package io.weft.peer;

import java.io.Serializable;
import java.util.Objects;

/**
 * What an executor announces of itself: how to reach its blocks, by memory on the same host or by
 * TCP from anywhere, and what its GPU can do.
 *
 * @param executorId Spark's executor id
 * @param incarnation 8 hex digits, different in every life of an executor
 * @param host name or address that peers connect to
 * @param port of the block server
 * @param folder the executor's folder in shared memory, an absolute path on its host
 * @param token contents of the token file in {@code folder}
 * @param bootId boot id of its kernel; equal on both sides when both run on one kernel
 * @param version of Weft it runs
 * @param gpu of which arrays are exchanged with other executors, or why there is none
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
    // Another version of Weft, which is told so, says nothing of GPUs.
    gpu = gpu == null ? GpuEnd.without("its executor says nothing of GPUs") : gpu;
    if (port < 0 || port > 65535) {
      throw new IllegalArgumentException("port of executor " + executorId + ": " + port);
    }
  }

  /** An executor that has not looked for a GPU. */
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

  /** The same executor with a GPU, or with the reason for having none. */
  public PeerAddress withGpu(GpuEnd found) {
    return new PeerAddress(
        executorId, incarnation, host, port, folder, token, bootId, version, found);
  }

  /** What the choice of a way to this executor depends on. */
  public PathEnd pathEnd() {
    return new PathEnd(bootId, gpu);
  }

  /** Without the token: whoever knows it may be taken for the executor. */
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
}
