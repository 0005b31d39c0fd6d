package io.weft.wire;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * Answers {@link OpenBlocks} if the blocks cannot be sent.
 *
 * <pre>
 *  +-------------------------------+
 *  | header, type 3                | 12
 *  +---------------+---------------+
 *  | range         | retry after   |  8   position in the request, or -1 for all; ms, or 0
 *  +---------------+---------------+
 *  | length | reason, UTF-8        |  4 + at most 4,096
 *  +---------------+---------------+
 * </pre>
 *
 * @param range the range of the request that is the reason, or -1 for no single one
 * @param retryAfterMillis delay before a retry, if the peer is only busy; 0 for no retry
 * @param reason text for the error message
 */
public record BlocksRefused(int range, int retryAfterMillis, String reason) {
  private static final int MAX_REASON_BYTES = 4096;
  private static final int MAX_REASON_CHARS = MAX_REASON_BYTES / 4;
  private static final int MAX_RETRY_MILLIS = 60_000;
  private static final String NAME = "blocks-refused message";

  /** Truncates a reason that is too long for the message. */
  public BlocksRefused {
    reason = reason.substring(0, Math.min(reason.length(), MAX_REASON_CHARS));
  }

  /** Whether a received message is of this type. */
  public static boolean isOne(ByteBuffer received) {
    return MessageHeader.type(received) == MessageHeader.BLOCKS_REFUSED;
  }

  /** Encodes the message, ready to be sent. */
  public ByteBuffer encode() {
    byte[] text = reason.getBytes(StandardCharsets.UTF_8);
    ByteBuffer bytes =
        MessageHeader.allocate(
            MessageHeader.BLOCKS_REFUSED, MessageHeader.BYTES + 12 + text.length);
    bytes.putInt(range).putInt(retryAfterMillis).putInt(text.length).put(text);
    return MessageHeader.seal(bytes);
  }

  /**
   * Decodes a message from the buffer's position to its limit.
   *
   * @param ranges number of ranges in the request
   * @throws WireException if it is damaged, of another type or version
   */
  public static BlocksRefused decode(ByteBuffer received, int ranges) throws WireException {
    WireReader reader = MessageHeader.open(received, NAME, MessageHeader.BLOCKS_REFUSED);
    int range = reader.int32("range");
    reader.require(range >= -1 && range < ranges, "range", range);
    int retry = reader.count("retry after");
    reader.require(retry <= MAX_RETRY_MILLIS, "retry after", retry);
    String reason = reader.text(MAX_REASON_BYTES, "reason");
    reader.end();
    return new BlocksRefused(range, retry, reason);
  }
}
