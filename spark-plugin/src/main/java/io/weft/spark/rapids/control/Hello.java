package io.weft.spark.rapids.control;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * What a client says first on a connection. The server answers with its own, in which the two
 * executors are the other way round, or refuses.
 *
 * @param version of Weft; both ends have to have the same
 * @param executor who speaks
 * @param wanted whom it takes the other end for
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
   * @throws IllegalArgumentException when it is something else
   */
  static Hello decode(ByteBuffer in) {
    try {
      if (in.getLong() != MAGIC) {
        throw new IllegalArgumentException("whoever connects is not Weft's shuffle transport");
      }
      return new Hello(Encoder.text(in), in.getLong(), in.getLong());
    } catch (BufferUnderflowException e) {
      throw new IllegalArgumentException("a first message of the shuffle transport is short", e);
    }
  }

  /**
   * Whether who speaks and who hears belong together.
   *
   * @param ownVersion of Weft at this end
   * @param own this executor
   * @throws IllegalArgumentException when not; the message names both
   */
  public void check(String ownVersion, long own) {
    if (wanted != own) {
      throw new IllegalArgumentException(
          "executor %d looks for executor %d and reached executor %d: the address is an old one"
              .formatted(executor, wanted, own));
    }
    if (!version.equals(ownVersion)) {
      throw new IllegalArgumentException(
          "executor %d has Weft %s and executor %d has Weft %s: use one version"
              .formatted(executor, version, own, ownVersion));
    }
  }
}
