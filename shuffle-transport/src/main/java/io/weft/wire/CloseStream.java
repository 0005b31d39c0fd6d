package io.weft.wire;

import java.nio.ByteBuffer;

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
public record CloseStream(StreamId stream) {
  /** Encodes the message, ready to be sent. */
  public ByteBuffer encode() {
    return MessageHeader.seal(
        MessageHeader.allocate(MessageHeader.CLOSE_STREAM, MessageHeader.BYTES + 16)
            .putLong(stream.high())
            .putLong(stream.low()));
  }

  /**
   * Decodes a message from the buffer's position to its limit.
   *
   * @throws WireException if it is damaged, of another type or version
   */
  public static CloseStream decode(ByteBuffer received) throws WireException {
    WireReader reader =
        MessageHeader.open(received, "close-stream message", MessageHeader.CLOSE_STREAM);
    StreamId stream = new StreamId(reader.int64("stream id"), reader.int64("stream id"));
    reader.end();
    return new CloseStream(stream);
  }
}
