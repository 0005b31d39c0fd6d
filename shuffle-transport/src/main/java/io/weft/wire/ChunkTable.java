package io.weft.wire;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.stream.IntStream;

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
 * An encrypted chunk is sent in {@link io.weft.encryption.SealedFormat}. Its checksum covers the
 * encrypted bytes.
 *
 * <p>For one thread while it is filled; immutable afterwards.
 */
public final class ChunkTable {
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
   * @param sum an {@link io.weft.integrity.Checksum}
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

  /** The checksum of a chunk, or {@link io.weft.integrity.Checksum#NONE}. */
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
  public boolean isSealed(int chunk) {
    return sent[chunk] > length[chunk];
  }

  /** Whether a chunk is sent neither compressed nor encrypted. */
  public boolean isSentAsItIs(int chunk) {
    return sent[chunk] == length[chunk];
  }

  /** Bytes of all chunks. */
  long totalBytes() {
    long sum = 0;
    for (int chunk = 0; chunk < count; chunk++) {
      sum = Math.addExact(sum, length[chunk]);
    }
    return sum;
  }

  /** The bytes of all chunks in the stream, compressed or encrypted where they are. */
  public long totalSentBytes() {
    return IntStream.of(sent).limit(count).asLongStream().sum();
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
