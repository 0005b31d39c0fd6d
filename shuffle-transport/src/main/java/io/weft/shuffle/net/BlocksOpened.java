package io.weft.shuffle.net;

import io.weft.shuffle.net.MessageHeader.WireReader;
import io.weft.shuffle.net.OpenBlocks.BlockRange;
import io.weft.shuffle.net.OpenBlocks.StreamId;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.ChunkEncryptor.EncryptedChunkFormat;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

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
    return blocks(table.count());
  }

  /** The number of blocks with chunks among the first ones of the answer. */
  public int blocks(int chunks) {
    int blocks = 0;
    int chunk = 0;
    for (int chunksOfRange : rangeChunks) {
      int end = Math.min(chunk + chunksOfRange, chunks);
      for (int first = chunk; chunk < end; chunk++) {
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
    return MessageHeader.finish(bytes);
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
      BlockKey requested = request.ranges().get(range).key();
      if (!key.equals(requested)) {
        throw new WireException(NAME + ": " + requested + " was requested, the answer has " + key);
      }
      chunks[range] = reader.count("chunks of range");
    }
    return chunks;
  }

  /** Checks the chunks of an answer against the request, before any chunk is received. */
  static final class AnswerCheck {
    private static final long ALIGNMENT = 64;

    /** A chunk is in one segment, which is mapped as one buffer. */
    private static final long MAX_CHUNK_BYTES = Integer.MAX_VALUE - ALIGNMENT + 1;

    private final WireReader reader;
    private final OpenBlocks request;

    AnswerCheck(WireReader reader, OpenBlocks request) {
      this.reader = reader;
      this.request = request;
    }

    /** Requires that chunks are in requested partitions, in order, and not empty. */
    void chunks(int[] rangeChunks, ChunkTable table) throws WireException {
      int count = table.count();
      reader.require(count <= request.maxChunks(), "chunks", count);
      int position = table.firstPosition();
      reader.require(position <= request.firstChunk(), "first position", position);
      int chunk = 0;
      for (int range = 0; range < rangeChunks.length; range++) {
        reader.require(rangeChunks[range] <= count - chunk, "chunks", rangeChunks[range]);
        BlockRange requested = request.ranges().get(range);
        int least = requested.startPartition();
        for (int end = chunk + rangeChunks[range]; chunk < end; chunk++) {
          int partition = table.partition(chunk);
          boolean inside = partition >= least && partition < requested.endPartition();
          reader.require(inside, "partition of " + requested.key(), partition);
          chunk(table, chunk);
          least = partition;
        }
      }
      reader.require(chunk == count, "chunks without a range", count - chunk);
    }

    private void chunk(ChunkTable table, int chunk) throws WireException {
      long bytes = table.length(chunk);
      reader.require(table.rows(chunk) >= 0, "rows", table.rows(chunk));
      reader.require(bytes > 0 && bytes <= MAX_CHUNK_BYTES, "bytes of a chunk", bytes);
      int sent = table.sentBytes(chunk);
      boolean compressible = request.compression() != Compression.NONE;
      boolean encrypted = sent == EncryptedChunkFormat.encryptedBytes(bytes);
      boolean plain = compressible ? sent > 0 && sent <= bytes : sent == bytes;
      reader.require(encrypted || plain, "sent bytes", sent);
    }

    /**
     * Requires that the chunks fit into the reader's memory, or that the answer says how much the
     * next chunk needs.
     */
    void size(ChunkTable table, long needed, boolean complete) throws WireException {
      long left = request.maxBytes();
      for (int chunk = 0; chunk < table.count(); chunk++) {
        long bytes = table.length(chunk);
        reader.require(bytes <= left, "bytes beyond those requested", bytes);
        left -= Math.min(left, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
      }
      boolean starved = table.count() == 0 && !complete;
      boolean sound = starved ? needed > request.maxBytes() : needed == 0;
      reader.require(sound, "needed bytes", needed);
    }
  }

  /**
   * The chunks of an answer in the order of the stream, column by column.
   *
   * <pre>
   *  +-------------------------------+
   *  | position of chunk 0           |  4       among those of its partition
   *  | partition of chunk 0..C-1     |  C x 4
   *  | rows of chunk 0..C-1          |  C x 4
   *  | checksum of chunk 0..C-1      |  C x 4   CRC32C of its bytes, uncompressed; 0: unchecked
   *  | sent bytes of chunk 0..C-1    |  C x 4   in the stream; fewer than its bytes if compressed,
   *  |                               |          more if encrypted
   *  | bytes of chunk 0..C-1         |  C x 8
   *  +-------------------------------+
   * </pre>
   *
   * An encrypted chunk is sent in {@link
   * io.weft.shuffle.store.ChunkEncryptor.EncryptedChunkFormat}. Its checksum covers the encrypted
   * bytes.
   *
   * <p>For one thread while it is filled; immutable afterwards.
   */
  public static final class ChunkTable {
    static final int FIXED_BYTES = 4;
    static final int CHUNK_BYTES = 24;

    private int firstPosition;
    private int count;
    private int[] partition;
    private int[] rows;
    private int[] checksum;
    private int[] sent;
    private long[] length;

    /** Creates an empty table. */
    public ChunkTable() {
      this(0, new int[64], new int[64], new int[64], new int[64], new long[64]);
    }

    private ChunkTable(
        int count, int[] partition, int[] rows, int[] checksum, int[] sent, long[] length) {
      this.count = count;
      this.partition = partition;
      this.rows = rows;
      this.checksum = checksum;
      this.sent = sent;
      this.length = length;
    }

    /**
     * Adds a chunk.
     *
     * @param sum an {@link io.weft.shuffle.store.Checksum}
     * @param sentBytes in the stream: {@code bytes}, fewer if compressed, more if encrypted
     * @param bytes of the chunk, at least 1
     */
    public ChunkTable add(int ofPartition, int rowCount, int sum, int sentBytes, long bytes) {
      if (count == length.length) {
        grow();
      }
      partition[count] = ofPartition;
      rows[count] = rowCount;
      checksum[count] = sum;
      sent[count] = sentBytes;
      length[count] = bytes;
      count++;
      return this;
    }

    private void grow() {
      int capacity = Math.multiplyExact(count, 2);
      partition = Arrays.copyOf(partition, capacity);
      rows = Arrays.copyOf(rows, capacity);
      checksum = Arrays.copyOf(checksum, capacity);
      sent = Arrays.copyOf(sent, capacity);
      length = Arrays.copyOf(length, capacity);
    }

    /** Sets the number of chunks of the first partition that earlier answers contained. */
    public ChunkTable startAt(int position) {
      firstPosition = position;
      return this;
    }

    /** The number of chunks of the first partition before the first chunk of this table. */
    public int firstPosition() {
      return firstPosition;
    }

    /** The number of chunks. */
    public int count() {
      return count;
    }

    /** The partition of a chunk. */
    public int partition(int chunk) {
      return partition[chunk];
    }

    /** The rows of a chunk. */
    public int rows(int chunk) {
      return rows[chunk];
    }

    /** The checksum of a chunk, or {@link io.weft.shuffle.store.Checksum#NONE}. */
    public int checksum(int chunk) {
      return checksum[chunk];
    }

    /** The bytes of a chunk in the stream. */
    public int sentBytes(int chunk) {
      return sent[chunk];
    }

    /** The bytes of a chunk. */
    public long length(int chunk) {
      return length[chunk];
    }

    /** Whether a chunk is sent compressed. */
    public boolean isCompressed(int chunk) {
      return sent[chunk] < length[chunk];
    }

    /** Whether a chunk is sent encrypted. */
    public boolean isEncrypted(int chunk) {
      return sent[chunk] > length[chunk];
    }

    /** Whether a chunk is sent neither compressed nor encrypted. */
    public boolean isPlain(int chunk) {
      return sent[chunk] == length[chunk];
    }

    /** Bytes of all chunks. */
    long totalBytes() {
      return totalBytes(count);
    }

    /** The bytes of the first chunks, uncompressed. */
    public long totalBytes(int chunks) {
      long sum = 0;
      for (int chunk = 0; chunk < chunks; chunk++) {
        sum = Math.addExact(sum, length[chunk]);
      }
      return sum;
    }

    /** The bytes of all chunks in the stream, compressed or encrypted where they are. */
    public long totalSentBytes() {
      return totalSentBytes(count);
    }

    /** As {@link #totalSentBytes()}, of the first chunks. */
    public long totalSentBytes(int chunks) {
      return IntStream.of(sent).limit(chunks).asLongStream().sum();
    }

    void write(ByteBuffer bytes) {
      bytes.putInt(firstPosition);
      bytes.asIntBuffer().put(partition, 0, count).put(rows, 0, count);
      bytes.position(bytes.position() + 8 * count);
      bytes.asIntBuffer().put(checksum, 0, count).put(sent, 0, count);
      bytes.position(bytes.position() + 8 * count);
      bytes.asLongBuffer().put(length, 0, count);
      bytes.position(bytes.position() + 8 * count);
    }

    static ChunkTable read(WireReader reader, int chunks) throws WireException {
      int firstPosition = reader.count("first position");
      ChunkTable table =
          new ChunkTable(
              chunks,
              reader.ints(chunks, "partitions"),
              reader.ints(chunks, "rows"),
              reader.ints(chunks, "checksums"),
              reader.ints(chunks, "sent bytes"),
              reader.longs(chunks, "bytes"));
      return table.startAt(firstPosition);
    }
  }
}
