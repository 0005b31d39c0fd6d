package io.weft.wire;

import io.weft.catalog.BlockKey;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
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
 * @param mostBytes limit for the bytes of the answer, each chunk rounded up to 64; at least 1
 * @param firstChunk number of chunks of the first range to skip, because they were delivered before
 * @param mostChunks limit for the chunks of the answer; at least 1
 * @param checksums whether the answer shall have a checksum for each chunk
 * @param compression codec for the chunks that it makes smaller
 * @param ranges in the requested order, at least one
 */
public record OpenBlocks(
    String incarnation,
    long mostBytes,
    int firstChunk,
    int mostChunks,
    boolean checksums,
    Compression compression,
    List<BlockRange> ranges) {
  /** The most ranges of a request. */
  public static final int MOST_RANGES = 1 << 16;

  /** The most chunks of an answer. */
  public static final int MOST_CHUNKS = 1 << 17;

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
    bytes.putLong(mostBytes).putInt(firstChunk).putInt(mostChunks);
    bytes.putInt(checksums ? 1 : 0).putInt(compression.code()).putInt(ranges.size());
    for (BlockRange range : ranges) {
      bytes.putInt(range.key().shuffleId()).putLong(range.key().mapId());
      bytes.putInt(range.startPartition()).putInt(range.endPartition());
    }
    return MessageHeader.seal(bytes.putInt(text.length).put(text));
  }

  /**
   * Decodes a message from the buffer's position to its limit.
   *
   * @throws WireException if it is damaged, of another type or version
   */
  public static OpenBlocks decode(ByteBuffer received) throws WireException {
    WireReader reader = MessageHeader.open(received, NAME, MessageHeader.OPEN_BLOCKS);
    long mostBytes = reader.int64("most bytes");
    reader.require(mostBytes > 0, "most bytes", mostBytes);
    int firstChunk = reader.count("first chunk");
    int mostChunks = reader.count("most chunks");
    reader.require(mostChunks > 0 && mostChunks <= MOST_CHUNKS, "most chunks", mostChunks);
    int checksums = reader.int32("checksums");
    reader.require(checksums == 0 || checksums == 1, "checksums", checksums);
    Compression compression = Compression.read(reader);
    int count = reader.elements(RANGE_BYTES, "ranges");
    reader.require(count > 0 && count <= MOST_RANGES, "ranges", count);
    List<BlockRange> ranges = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      ranges.add(range(reader));
    }
    String incarnation = reader.text(MAX_INCARNATION_BYTES, "incarnation");
    reader.end();
    return new OpenBlocks(
        incarnation, mostBytes, firstChunk, mostChunks, checksums == 1, compression, ranges);
  }

  private static BlockRange range(WireReader reader) throws WireException {
    BlockKey key = new BlockKey(reader.int32("shuffle id"), reader.int64("map id"));
    int start = reader.count("start partition");
    int end = reader.count("end partition");
    reader.require(start <= end, "partitions ending at", end);
    return new BlockRange(key, start, end);
  }
}
