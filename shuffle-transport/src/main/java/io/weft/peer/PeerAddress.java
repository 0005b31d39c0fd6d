package io.weft.peer;

import java.io.Serializable;
import java.util.Objects;

/**
 * What an executor announces of itself: how to reach its blocks, by memory on the same host or by
 * TCP from anywhere.
 *
 * @param executorId Spark's executor id
 * @param incarnation 8 hex digits, different in every life of an executor
 * @param host name or address that peers connect to
 * @param port of the block server
 * @param folder the executor's folder in shared memory, an absolute path on its host
 * @param token contents of the token file in {@code folder}
 * @param bootId boot id of its kernel; equal on both sides when both run on one kernel
 * @param version of Weft it runs
 */
public record PeerAddress(
    String executorId,
    String incarnation,
    String host,
    int port,
    String folder,
    String token,
    String bootId,
    String version)
    implements Serializable {
  public PeerAddress {
    Objects.requireNonNull(executorId, "executorId");
    Objects.requireNonNull(incarnation, "incarnation");
    Objects.requireNonNull(host, "host");
    Objects.requireNonNull(folder, "folder");
    Objects.requireNonNull(token, "token");
    Objects.requireNonNull(bootId, "bootId");
    Objects.requireNonNull(version, "version");
    if (port < 0 || port > 65535) {
      throw new IllegalArgumentException("port of executor " + executorId + ": " + port);
    }
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
