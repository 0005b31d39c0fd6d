package io.weft.spark.rapids.control;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * The first message of a client on a connection. The server answers with its own hello, with the
 * two executors swapped, or refuses.
 *
 * @param version of Weft; must be the same at both ends
 * @param executor the sender
 * @param wanted the executor that the sender expects at the other end
 */
public record Hello(String version, long executor, long wanted) {
  private static final long MAGIC = 0x5765667452617069L;

  ByteBuffer encode() {
    return new Encoder()
        .number(MAGIC)
        .bytes(version.getBytes(StandardCharsets.UTF_8))
        .number(executor)
        .number(wanted)
        .end();
  }

  /**
   * Reads what {@link #encode} wrote.
   *
   * @throws IllegalArgumentException if the bytes have another format
   */
  static Hello decode(ByteBuffer in) {
    try {
      if (in.getLong() != MAGIC) {
        throw new IllegalArgumentException(
            "the connecting process is not Weft's shuffle transport");
      }
      return new Hello(Encoder.text(in), in.getLong(), in.getLong());
    } catch (BufferUnderflowException e) {
      throw new IllegalArgumentException("a first message of the shuffle transport is short", e);
    }
  }

  /**
   * Checks that the hello is for this executor and has its version.
   *
   * @param ownVersion of Weft at this end
   * @param own this executor
   * @throws IllegalArgumentException if not; the message names both executors
   */
  public void check(String ownVersion, long own) {
    if (wanted != own) {
      throw new IllegalArgumentException(
          "executor %d expected executor %d and reached executor %d: the address is outdated"
              .formatted(executor, wanted, own));
    }
    if (!version.equals(ownVersion)) {
      throw new IllegalArgumentException(
          "executor %d has Weft %s and executor %d has Weft %s: use one version"
              .formatted(executor, version, own, ownVersion));
    }
  }
}
