package io.weft.shuffle.net;

import io.weft.shuffle.net.MessageHeader.WireReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;

/**
 * The id of a stream of chunks. The sender chooses it at random, so that other peers cannot guess
 * it.
 *
 * @param high upper half
 * @param low lower half
 */
public record StreamId(long high, long low) {
  /** The id in an answer without chunks, which has no stream. */
  public static final StreamId NONE = new StreamId(0, 0);

  /** The name of the stream in Spark's transport: 32 hex digits. */
  @Override
  public String toString() {
    return HexFormat.of().toHexDigits(high) + HexFormat.of().toHexDigits(low);
  }

  /**
   * Discards a stream that was opened for a reader. Has no answer.
   *
   * <pre>
   *  +-------------------------------+
   *  | header, type 4                | 12
   *  +---------------+---------------+
   *  | stream id, high               |  8
   *  | stream id, low                |  8
   *  +-------------------------------+
   * </pre>
   *
   * @param stream id of the stream
   */
  public record DiscardStream(StreamId stream) {
    /** Encodes the message, ready to be sent. */
    public ByteBuffer encode() {
      return MessageHeader.finish(
          MessageHeader.allocate(MessageHeader.CLOSE_STREAM, MessageHeader.BYTES + 16)
              .putLong(stream.high())
              .putLong(stream.low()));
    }

    /**
     * Decodes a message from the buffer's position to its limit.
     *
     * @throws WireException if it is damaged, of another type or version
     */
    public static DiscardStream decode(ByteBuffer received) throws WireException {
      WireReader reader =
          MessageHeader.open(received, "close-stream message", MessageHeader.CLOSE_STREAM);
      StreamId stream = new StreamId(reader.int64("stream id"), reader.int64("stream id"));
      reader.end();
      return new DiscardStream(stream);
    }
  }
}
