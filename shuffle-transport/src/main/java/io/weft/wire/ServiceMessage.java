package io.weft.wire;

import java.nio.ByteBuffer;

/**
 * A question to a service of the peer beside its blocks, or the answer to one. What the bytes mean
 * is between the two ends of the service.
 *
 * <pre>
 *  +-------------------------------+
 *  | header, type 5                | 12
 *  +---------------+---------------+
 *  | length        |                  4
 *  +---------------+
 *  | bytes                         | length
 *  +-------------------------------+
 * </pre>
 *
 * @param bytes not to be changed
 */
@SuppressWarnings("ArrayRecordComponent") // Never compared.
public record ServiceMessage(byte[] bytes) {
  private static final String NAME = "service message";

  /** Whether a received message says that it is one. */
  public static boolean is(ByteBuffer received) {
    return MessageHeader.type(received) == MessageHeader.SERVICE;
  }

  /** The message as bytes, ready to be sent. */
  public ByteBuffer encode() {
    return MessageHeader.seal(
        MessageHeader.allocate(MessageHeader.SERVICE, MessageHeader.BYTES + 4 + bytes.length)
            .putInt(bytes.length)
            .put(bytes));
  }

  /**
   * Reads a message from the buffer's position to its limit.
   *
   * @throws WireException if it is damaged, of another type or version
   */
  public static ServiceMessage decode(ByteBuffer received) throws WireException {
    WireReader reader = MessageHeader.open(received, NAME, MessageHeader.SERVICE);
    byte[] bytes = reader.bytes("bytes");
    reader.end();
    return new ServiceMessage(bytes);
  }
}
