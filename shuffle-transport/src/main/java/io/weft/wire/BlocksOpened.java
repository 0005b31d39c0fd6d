package io.weft.wire;

import io.weft.catalog.BlockKey;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * Answers {@link OpenBlocks}. Lists the chunks of the stream, which are sent back to back and in
 * this order. The answer covers the first of the requested ranges; the last of these may be covered
 * in part.
 *
 * <pre>
 *  +-------------------------------+
 *  | header, type 2                | 12
 *  +---------------+---------------+
 *  | stream id, high               |  8   names the stream to request
 *  | stream id, low                |  8
 *  +---------------+---------------+
 *  | ranges R      | chunks C      |  8
 *  +---------------+---------------+
 *  | needed bytes                  |  8   bytes that the next chunk needs if C is 0, else 0
 *  +---------------+---------------+
 *  | complete      |                  4   1 if the last range is covered to its end, else 0
 *  +---------------+---------------+
 *  | R x { shuffle id    4         |
 *  |       map id        8         |
 *  |       chunks        4 }       |  R x 16
 *  +---------------+---------------+
 *  | {@link ChunkTable}            |  4 + C x 24
 *  +-------------------------------+
 * </pre>
 */
public final class BlocksOpened {
  private static final int FIXED_BYTES = MessageHeader.BYTES + 36 + ChunkTable.FIXED_BYTES;
  private static final int RANGE_BYTES = 16;
  private static final String NAME = "blocks-opened message";

  private final StreamId stream;
  private final long neededBytes;
  private final boolean complete;
  private final int[] rangeChunks;
  private final List<BlockKey> keys;
  private final ChunkTable table;
  private final long totalBytes;

  /**
   * Takes ownership of the array and the table.
   *
   * @param stream id of the stream
   * @param neededBytes bytes that the next chunk needs if the answer has no chunk, else 0
   * @param complete whether the last range is covered to its end
   * @param keys of the covered ranges
   * @param rangeChunks number of chunks in the answer, by range
   * @param table the chunks
   */
  public BlocksOpened(
      StreamId stream,
      long neededBytes,
      boolean complete,
      List<BlockKey> keys,
      int[] rangeChunks,
      ChunkTable table) {
    this.stream = stream;
    this.neededBytes = neededBytes;
    this.complete = complete;
    this.keys = List.copyOf(keys);
    this.rangeChunks = rangeChunks;
    this.table = table;
    this.totalBytes = table.totalBytes();
  }

  /** The id of the stream of the chunks. */
  public StreamId stream() {
    return stream;
  }

  /** The bytes that the next chunk needs if the answer has no chunk, else 0. */
  public long neededBytes() {
    return neededBytes;
  }

  /** Whether the last range is covered to its end. */
  public boolean complete() {
    return complete;
  }

  /** The number of requested ranges that are covered. */
  public int ranges() {
    return rangeChunks.length;
  }

  /** The number of chunks of a range in the answer. */
  public int rangeChunks(int range) {
    return rangeChunks[range];
  }

  /** The map output of a range. */
  public BlockKey key(int range) {
    return keys.get(range);
  }

  /** The number of chunks in the answer. */
  public int chunks() {
    return table.count();
  }

  /** The chunks. */
  public ChunkTable table() {
    return table;
  }

  /** The partition of a chunk. */
  public int partition(int chunk) {
    return table.partition(chunk);
  }

  /** The rows of a chunk. */
  public int rows(int chunk) {
    return table.rows(chunk);
  }

  /** The bytes of a chunk. */
  public long length(int chunk) {
    return table.length(chunk);
  }

  /** The number of blocks with chunks in the answer. */
  public int blocks() {
    int blocks = 0;
    int chunk = 0;
    for (int chunksOfRange : rangeChunks) {
      for (int end = chunk + chunksOfRange, first = chunk; chunk < end; chunk++) {
        blocks += chunk == first || partition(chunk) != partition(chunk - 1) ? 1 : 0;
      }
    }
    return blocks;
  }

  /** The bytes of all chunks, uncompressed. */
  public long totalBytes() {
    return totalBytes;
  }

  /** Encodes the message, ready to be sent. */
  public ByteBuffer encode() {
    int size = FIXED_BYTES + RANGE_BYTES * ranges() + ChunkTable.CHUNK_BYTES * chunks();
    ByteBuffer bytes = MessageHeader.allocate(MessageHeader.BLOCKS_OPENED, size);
    bytes.putLong(stream.high()).putLong(stream.low()).putInt(ranges()).putInt(chunks());
    bytes.putLong(neededBytes).putInt(complete ? 1 : 0);
    for (int range = 0; range < ranges(); range++) {
      bytes.putInt(key(range).shuffleId()).putLong(key(range).mapId()).putInt(rangeChunks[range]);
    }
    table.write(bytes);
    return MessageHeader.seal(bytes);
  }

  /**
   * Decodes a message from the buffer's position to its limit, as the answer to a request.
   *
   * @throws WireException if it is damaged, of another type or version, or does not fit the request
   */
  public static BlocksOpened decode(ByteBuffer received, OpenBlocks request) throws WireException {
    WireReader reader = MessageHeader.open(received, NAME, MessageHeader.BLOCKS_OPENED);
    StreamId stream = new StreamId(reader.int64("stream id"), reader.int64("stream id"));
    int ranges = reader.count("ranges");
    int chunks = reader.count("chunks");
    long needed = reader.int64("needed bytes");
    int complete = reader.int32("complete");
    reader.require(complete == 0 || complete == 1, "complete", complete);
    reader.require(ranges > 0 && ranges <= request.ranges().size(), "ranges", ranges);
    int[] rangeChunks = rangeChunks(reader, request, ranges);
    ChunkTable table = ChunkTable.read(reader, chunks);
    reader.end();
    AnswerCheck check = new AnswerCheck(reader, request);
    check.chunks(rangeChunks, table);
    check.size(table, needed, complete == 1);
    List<BlockKey> keys =
        request.ranges().subList(0, ranges).stream().map(BlockRange::key).toList();
    return new BlocksOpened(stream, needed, complete == 1, keys, rangeChunks, table);
  }

  private static int[] rangeChunks(WireReader reader, OpenBlocks request, int ranges)
      throws WireException {
    int[] chunks = new int[ranges];
    for (int range = 0; range < ranges; range++) {
      BlockKey key = new BlockKey(reader.int32("shuffle id"), reader.int64("map id"));
      BlockKey asked = request.ranges().get(range).key();
      if (!key.equals(asked)) {
        throw new WireException(NAME + ": " + asked + " was asked for, the answer has " + key);
      }
      chunks[range] = reader.count("chunks of range");
    }
    return chunks;
  }
}
