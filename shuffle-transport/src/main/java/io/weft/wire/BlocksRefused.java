package io.weft.wire;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * Answers {@link OpenBlocks} where the blocks cannot be sent.
 *
 * <pre>
 *  +-------------------------------+
 *  | header, type 3                |  8
 *  +---------------+---------------+
 *  | range         |                  4   position in the request, or -1: all of them
 *  +---------------+---------------+
 *  | length | reason, UTF-8        |  4 + at most 4,096
 *  +---------------+---------------+
 * </pre>
 *
 * @param range which range of the request is the reason, or -1 where it is none of them
 * @param reason for people
 */
public record BlocksRefused(int range, String reason) {
  private static final int MOST_REASON_BYTES = 4096;
  private static final int MOST_REASON_CHARS = MOST_REASON_BYTES / 4;
  private static final String NAME = "blocks-refused message";

  /** Cuts a reason that is too long for the message. */
  public BlocksRefused {
    reason = reason.substring(0, Math.min(reason.length(), MOST_REASON_CHARS));
  }

  /** Whether a received message is of this type. */
  public static boolean isOne(ByteBuffer received) {
    return MessageHeader.type(received) == MessageHeader.BLOCKS_REFUSED;
  }

  /** The message as bytes, ready to be sent. */
  public ByteBuffer encode() {
    byte[] text = reason.getBytes(StandardCharsets.UTF_8);
    ByteBuffer bytes =
        MessageHeader.allocate(MessageHeader.BLOCKS_REFUSED, MessageHeader.BYTES + 8 + text.length);
    return bytes.putInt(range).putInt(text.length).put(text).flip();
  }

  /**
   * Reads a message from the buffer's position to its limit.
   *
   * @param ranges how many the request had
   * @throws WireException if it is damaged, of another type or version
   */
  public static BlocksRefused decode(ByteBuffer received, int ranges) throws WireException {
    WireReader reader = MessageHeader.open(received, NAME, MessageHeader.BLOCKS_REFUSED);
    int range = reader.int32("range");
    reader.require(range >= -1 && range < ranges, "range", range);
    String reason = reader.text(MOST_REASON_BYTES, "reason");
    reader.end();
    return new BlocksRefused(range, reason);
  }
}
