package io.weft.shuffle.store;

import io.weft.shuffle.store.ChunkEncryptor.EncryptedChunkFormat;
import io.weft.shuffle.store.ChunkEncryptor.EncryptedChunkFormat.ChunkName;

/**
 * The index of one map output: the place of each chunk. Chunks are numbered by partition, and
 * within a partition in commit order, so a partition is a range of chunk numbers. Immutable.
 *
 * <p>An executor keeps the indexes of all live shuffles, its own and those of peers on its host. So
 * an index needs only 16 bytes for each chunk, and 4 more if a chunk has a checksum.
 */
public final class MapOutput {
  /** A flag in a chunk's length: the chunk is encrypted. */
  static final long ENCRYPTED = Long.MIN_VALUE;

  private static final long ALIGNMENT = 64;

  private final BlockKey key;
  private final long segmentBytes;
  private final int[] firstChunk;
  private final int[] segment;
  private final int[] rows;

  /** Null if no chunk has a checksum. */
  private final int[] checksum;

  /** Offsets in units of 64 bytes. */
  private final int[] offset;

  /** Lengths in bytes; the complement of the length for an encrypted chunk. */
  private final int[] length;

  /**
   * Takes ownership of the arrays. {@code firstChunk} has one element more than there are
   * partitions. The others have one element per chunk. Offsets are multiples of 64 below 2^37,
   * lengths below 2^31. The length of an encrypted chunk also has the bit {@link #ENCRYPTED}.
   */
  MapOutput(
      BlockKey key,
      long segmentBytes,
      int[] firstChunk,
      int[] segment,
      int[] rows,
      int[] checksum,
      long[] offset,
      long[] length) {
    this.key = key;
    this.segmentBytes = segmentBytes;
    this.firstChunk = firstChunk;
    this.segment = segment;
    this.rows = rows;
    this.offset = new int[offset.length];
    this.length = new int[length.length];
    boolean summed = false;
    // One loop, because the JIT compiler takes long for each, and longer for streams.
    for (int chunk = 0; chunk < segment.length; chunk++) {
      long bytes = length[chunk];
      this.offset[chunk] = (int) (offset[chunk] / ALIGNMENT);
      this.length[chunk] = bytes < 0 ? ~(int) (bytes & ~ENCRYPTED) : (int) bytes;
      summed |= checksum[chunk] != Checksum.NONE;
    }
    this.checksum = summed ? checksum : null;
  }

  /** Shares all arrays with another index, except those of segments. */
  private MapOutput(
      BlockKey key,
      long segmentBytes,
      int[] firstChunk,
      int[] segment,
      int[] rows,
      int[] checksum,
      int[] offset,
      int[] length) {
    this.key = key;
    this.segmentBytes = segmentBytes;
    this.firstChunk = firstChunk;
    this.segment = segment;
    this.rows = rows;
    this.checksum = checksum;
    this.offset = offset;
    this.length = length;
  }

  /** The key of the map output. */
  public BlockKey key() {
    return key;
  }

  /**
   * The index of the same output after its segments got other numbers.
   *
   * @param numbers the new segment of each chunk
   */
  MapOutput inSegments(int[] numbers) {
    return new MapOutput(key, segmentBytes, firstChunk, numbers, rows, checksum, offset, length);
  }

  /** The size of the owner's regular segments. A larger segment holds only one chunk. */
  public long segmentBytes() {
    return segmentBytes;
  }

  /** Number of partitions, empty ones included. */
  public int partitions() {
    return firstChunk.length - 1;
  }

  /** Number of chunks in all partitions. */
  public int chunks() {
    return segment.length;
  }

  /**
   * Number of the first chunk of a partition.
   *
   * @param partition 0 to {@link #partitions()}; the last gives {@link #chunks()}
   */
  public int firstChunk(int partition) {
    return firstChunk[partition];
  }

  /** The segment of a chunk. */
  public int segment(int chunk) {
    return segment[chunk];
  }

  /** The offset of a chunk in its segment, in bytes. */
  public long offset(int chunk) {
    return offset[chunk] * ALIGNMENT;
  }

  /** The bytes of a chunk, decrypted. */
  public long length(int chunk) {
    return length[chunk] < 0 ? ~length[chunk] : length[chunk];
  }

  /** Whether a chunk is stored encrypted, in {@link EncryptedChunkFormat}. */
  public boolean isEncrypted(int chunk) {
    return length[chunk] < 0;
  }

  /** The name of a chunk of a partition, which its encryption covers. */
  public ChunkName name(int partition, int chunk) {
    return new ChunkName(key.shuffleId(), key.mapId(), partition, chunk - firstChunk[partition]);
  }

  /** The stored bytes of a chunk: more than its own if it is encrypted. */
  public long storedBytes(int chunk) {
    return isEncrypted(chunk) ? EncryptedChunkFormat.encryptedBytes(length(chunk)) : length(chunk);
  }

  /** The rows of a chunk. */
  public int rows(int chunk) {
    return rows[chunk];
  }

  /**
   * The checksum of the stored bytes of a chunk on disk; {@link
   * io.weft.shuffle.store.Checksum#NONE} for a chunk in memory.
   */
  public int checksum(int chunk) {
    return checksum == null ? Checksum.NONE : checksum[chunk];
  }

  /** The bytes of the partitions [start, end), decrypted. */
  public long bytes(int start, int end) {
    long sum = 0;
    for (int chunk = firstChunk[start]; chunk < firstChunk[end]; chunk++) {
      sum += length(chunk);
    }
    return sum;
  }

  /** The stored bytes of all chunks. */
  public long storedBytes() {
    long sum = 0;
    for (int chunk = 0; chunk < length.length; chunk++) {
      sum += storedBytes(chunk);
    }
    return sum;
  }

  /** The number of partitions in [start, end) that are not empty. */
  public int blocks(int start, int end) {
    int count = 0;
    for (int partition = start; partition < end; partition++) {
      count += firstChunk[partition + 1] > firstChunk[partition] ? 1 : 0;
    }
    return count;
  }
}
