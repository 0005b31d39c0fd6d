package io.weft.shuffle.net;

import io.weft.shuffle.net.MessageHeader.WireReader;
import java.nio.ByteBuffer;

/**
 * A call of a peer's service, or the answer to one. Only the two ends of the service know what the
 * bytes mean.
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
 * @param bytes must not be changed
 */
@SuppressWarnings("ArrayRecordComponent") // Never compared.
record ServiceMessage(byte[] bytes) {
  private static final String NAME = "service message";

  /** Whether a received message is of this type. */
  public static boolean matches(ByteBuffer received) {
    return MessageHeader.type(received) == MessageHeader.SERVICE;
  }

  /** Encodes the message, ready to be sent. */
  public ByteBuffer encode() {
    return MessageHeader.finish(
        MessageHeader.allocate(MessageHeader.SERVICE, MessageHeader.BYTES + 4 + bytes.length)
            .putInt(bytes.length)
            .put(bytes));
  }

  /**
   * Decodes a message from the buffer's position to its limit.
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
