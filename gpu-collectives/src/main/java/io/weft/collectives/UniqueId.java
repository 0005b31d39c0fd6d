package io.weft.collectives;

import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Optional;

/**
 * What the ranks of one communicator share before they know each other: 128 bytes, made by one rank
 * and handed to the others out of band.
 *
 * <pre>
 *  0        16             48       50                     128
 *  +--------+--------------+--------+-----------------------+
 *  | random | secret       | length | "host:port" of the    |
 *  | id     | for sockets  |        | root, UTF-8, or empty |
 *  +--------+--------------+--------+-----------------------+
 * </pre>
 *
 * <p>Any process that has the id can join, so {@link #encode()} is as confidential as the data.
 * {@link #toString()} shows only a part that identifies it in logs. Immutable.
 */
public final class UniqueId {
  /** The size of NCCL's unique id. */
  public static final int BYTES = 128;

  private static final int SECRET = 16;
  private static final int LENGTH = 48;
  private static final int TEXT = 50;
  private static final SecureRandom RANDOM = new SecureRandom();

  private final byte[] bytes;

  private UniqueId(byte[] bytes) {
    this.bytes = bytes;
  }

  /** Creates an id without an address, for bootstraps that know the address by other means. */
  public static UniqueId create() {
    return create("");
  }

  /** Creates an id that carries the address at which the root listens. */
  public static UniqueId create(InetSocketAddress root) {
    return create(root.getHostString() + ":" + root.getPort());
  }

  private static UniqueId create(String address) {
    byte[] text = address.getBytes(StandardCharsets.UTF_8);
    if (text.length > BYTES - TEXT) {
      throw new IllegalArgumentException(
          "the address " + address + " is longer than " + (BYTES - TEXT) + " bytes");
    }
    byte[] bytes = new byte[BYTES];
    byte[] random = new byte[LENGTH];
    RANDOM.nextBytes(random);
    System.arraycopy(random, 0, bytes, 0, LENGTH);
    bytes[LENGTH] = (byte) text.length;
    System.arraycopy(text, 0, bytes, TEXT, text.length);
    return new UniqueId(bytes);
  }

  /**
   * Decodes an id.
   *
   * @param encoded the result of {@link #encode}
   * @throws IllegalArgumentException when it is something else
   */
  public static UniqueId decode(String encoded) {
    byte[] bytes = Base64.getUrlDecoder().decode(encoded);
    if (bytes.length != BYTES) {
      throw new IllegalArgumentException(
          "a unique id has " + BYTES + " bytes, this text has " + bytes.length);
    }
    return new UniqueId(bytes);
  }

  /** The whole id as text; confidential. */
  public String encode() {
    return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
  }

  /** The address at which the root listens, if the id has it. */
  public Optional<InetSocketAddress> rootAddress() {
    String text = new String(bytes, TEXT, bytes[LENGTH], StandardCharsets.UTF_8);
    if (text.isEmpty()) {
      return Optional.empty();
    }
    int colon = text.lastIndexOf(':');
    return Optional.of(
        new InetSocketAddress(
            text.substring(0, colon), Integer.parseInt(text.substring(colon + 1))));
  }

  /**
   * The 32 bytes that prove to a peer that this process belongs to the communicator; confidential.
   */
  public byte[] secret() {
    return Arrays.copyOfRange(bytes, SECRET, LENGTH);
  }

  /** 32 hexadecimal digits that identify the communicator; not confidential. */
  public String name() {
    return HexFormat.of().formatHex(bytes, 0, SECRET);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof UniqueId that && Arrays.equals(bytes, that.bytes);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(bytes);
  }

  /** The first 8 digits of {@link #name()}. */
  @Override
  public String toString() {
    return name().substring(0, 8);
  }
}
