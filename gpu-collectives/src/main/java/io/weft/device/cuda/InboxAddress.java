package io.weft.device.cuda;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.UUID;

/**
 * The address of a {@link DescriptorInbox}, to send to the other process.
 *
 * @param name the name of its socket, which all processes of the host can see
 * @param token a secret that only the processes with the address know
 */
public record InboxAddress(UUID name, UUID token) {
  private static final int BYTES = 4 * Long.BYTES;
  private static final short UNIX = 1;

  static InboxAddress random() {
    return new InboxAddress(UUID.randomUUID(), UUID.randomUUID());
  }

  /** Encodes it for a message. */
  public byte[] encode() {
    return put(put(ByteBuffer.allocate(BYTES), name), token).array();
  }

  /**
   * Decodes {@link #encode}.
   *
   * @throws IllegalArgumentException for any other message
   */
  public static InboxAddress decode(byte[] message) {
    if (message.length != BYTES) {
      throw new IllegalArgumentException(
          message.length + " bytes are not an address of an inbox, which has " + BYTES);
    }
    ByteBuffer in = ByteBuffer.wrap(message);
    return new InboxAddress(
        new UUID(in.getLong(), in.getLong()), new UUID(in.getLong(), in.getLong()));
  }

  private static ByteBuffer put(ByteBuffer to, UUID id) {
    return to.putLong(id.getMostSignificantBits()).putLong(id.getLeastSignificantBits());
  }

  byte[] tokenBytes() {
    return put(ByteBuffer.allocate(2 * Long.BYTES), token).array();
  }

  /** The struct sockaddr_un of an abstract name, which ends with its socket. */
  byte[] socketAddress() {
    byte[] text = ("weft-" + name).getBytes(StandardCharsets.US_ASCII);
    return ByteBuffer.allocate(Short.BYTES + 1 + text.length)
        .order(ByteOrder.nativeOrder())
        .putShort(UNIX)
        .put((byte) 0)
        .put(text)
        .array();
  }
}
