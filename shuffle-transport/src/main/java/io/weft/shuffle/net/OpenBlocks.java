package io.weft.shuffle.net;

import io.weft.shuffle.net.MessageHeader.WireReader;
import io.weft.shuffle.store.BlockKey;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/**
 * Requests blocks. The peer answers with {@link BlocksOpened} or {@link BlocksRefused}.
 *
 * <pre>
 *  +-------------------------------+
 *  | header, type 1                | 12
 *  +---------------+---------------+
 *  | most bytes                    |  8   memory that the reader has reserved
 *  +---------------+---------------+
 *  | first chunk   | most chunks   |  8   chunks of the first range to skip; limit for all ranges
 *  +---------------+---------------+
 *  | checksums     | compression   |  8   0 or 1: whether to send checksums; the codec
 *  +---------------+---------------+
 *  | ranges N      |                  4
 *  +---------------+---------------+
 *  | N x { shuffle id    4         |
 *  |       map id        8         |
 *  |       start         4         |
 *  |       end           4 }       |  N x 20
 *  +---------------+---------------+
 *  | length | incarnation, UTF-8   |  4 + at most 64: of the requested executor
 *  +---------------+---------------+
 * </pre>
 *
 * @param incarnation of the requested executor
 * @param maxBytes limit for the bytes of the answer, each chunk rounded up to 64; at least 1
 * @param firstChunk number of chunks of the first range to skip, because they were delivered before
 * @param maxChunks limit for the chunks of the answer; at least 1
 * @param checksums whether the answer shall have a checksum for each chunk
 * @param compression codec for the chunks that it makes smaller
 * @param ranges in the requested order, at least one
 */
public record OpenBlocks(
    String incarnation,
    long maxBytes,
    int firstChunk,
    int maxChunks,
    boolean checksums,
    Compression compression,
    List<BlockRange> ranges) {
  /** The most ranges of a request. */
  public static final int MAX_RANGES = 1 << 16;

  /** The most chunks of an answer. */
  public static final int MAX_CHUNKS = 1 << 17;

  private static final int RANGE_BYTES = 20;
  private static final int MAX_INCARNATION_BYTES = 64;
  private static final String NAME = "open-blocks message";

  public OpenBlocks {
    ranges = List.copyOf(ranges);
  }

  /** Encodes the message, ready to be sent. */
  public ByteBuffer encode() {
    byte[] text = incarnation.getBytes(StandardCharsets.UTF_8);
    int size = MessageHeader.BYTES + 28 + RANGE_BYTES * ranges.size() + 4 + text.length;
    ByteBuffer bytes = MessageHeader.allocate(MessageHeader.OPEN_BLOCKS, size);
    bytes.putLong(maxBytes).putInt(firstChunk).putInt(maxChunks);
    bytes.putInt(checksums ? 1 : 0).putInt(compression.code()).putInt(ranges.size());
    for (BlockRange range : ranges) {
      bytes.putInt(range.key().shuffleId()).putLong(range.key().mapId());
      bytes.putInt(range.startPartition()).putInt(range.endPartition());
    }
    return MessageHeader.finish(bytes.putInt(text.length).put(text));
  }

  /**
   * Decodes a message from the buffer's position to its limit.
   *
   * @throws WireException if it is damaged, of another type or version
   */
  public static OpenBlocks decode(ByteBuffer received) throws WireException {
    WireReader reader = MessageHeader.open(received, NAME, MessageHeader.OPEN_BLOCKS);
    long maxBytes = reader.int64("most bytes");
    reader.require(maxBytes > 0, "most bytes", maxBytes);
    int firstChunk = reader.count("first chunk");
    int maxChunks = reader.count("most chunks");
    reader.require(maxChunks > 0 && maxChunks <= MAX_CHUNKS, "most chunks", maxChunks);
    int checksums = reader.int32("checksums");
    reader.require(checksums == 0 || checksums == 1, "checksums", checksums);
    Compression compression = Compression.read(reader);
    int count = reader.elements(RANGE_BYTES, "ranges");
    reader.require(count > 0 && count <= MAX_RANGES, "ranges", count);
    List<BlockRange> ranges = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      ranges.add(range(reader));
    }
    String incarnation = reader.text(MAX_INCARNATION_BYTES, "incarnation");
    reader.end();
    return new OpenBlocks(
        incarnation, maxBytes, firstChunk, maxChunks, checksums == 1, compression, ranges);
  }

  private static BlockRange range(WireReader reader) throws WireException {
    BlockKey key = new BlockKey(reader.int32("shuffle id"), reader.int64("map id"));
    int start = reader.count("start partition");
    int end = reader.count("end partition");
    reader.require(start <= end, "partitions ending at", end);
    return new BlockRange(key, start, end);
  }

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
    public static boolean matches(ByteBuffer received) {
      return MessageHeader.type(received) == MessageHeader.BLOCKS_REFUSED;
    }

    /** Encodes the message, ready to be sent. */
    public ByteBuffer encode() {
      byte[] text = reason.getBytes(StandardCharsets.UTF_8);
      ByteBuffer bytes =
          MessageHeader.allocate(
              MessageHeader.BLOCKS_REFUSED, MessageHeader.BYTES + 12 + text.length);
      bytes.putInt(range).putInt(retryAfterMillis).putInt(text.length).put(text);
      return MessageHeader.finish(bytes);
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

  /**
   * A range of partitions of one map output.
   *
   * @param key of the map output
   * @param startPartition first partition
   * @param endPartition one past the last
   */
  public record BlockRange(BlockKey key, int startPartition, int endPartition) {}

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
}
