package io.weft.catalog;

import io.weft.encryption.ChunkName;
import io.weft.encryption.SealedFormat;

/**
 * Where the chunks of one map output lie. Chunks are numbered by partition, and within a partition
 * in the order of their commits, so a partition is a range of chunk numbers. Immutable.
 */
public final class MapOutput {
  /** In a chunk's length: it lies there sealed. */
  static final long SEALED = Long.MIN_VALUE;

  private final BlockKey key;
  private final long segmentBytes;
  private final int[] firstChunk;
  private final int[] segment;
  private final int[] rows;
  private final int[] checksum;
  private final long[] offset;
  private final long[] length;

  /**
   * Takes the arrays over. {@code firstChunk} has one element more than there are partitions, the
   * others one per chunk; the length of one that lies there sealed has the bit {@link #SEALED}.
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
    this.checksum = checksum;
    this.offset = offset;
    this.length = length;
  }

  /** Which map output this is. */
  public BlockKey key() {
    return key;
  }

  /** Size of the owner's ordinary segments; a larger segment holds one chunk only. */
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

  /** The segment a chunk lies in. */
  public int segment(int chunk) {
    return segment[chunk];
  }

  /** Where in its segment a chunk starts, in bytes. */
  public long offset(int chunk) {
    return offset[chunk];
  }

  /** Bytes of a chunk. */
  public long length(int chunk) {
    return length[chunk] & ~SEALED;
  }

  /** Whether a chunk lies there encrypted, in {@link SealedFormat}. */
  public boolean isSealed(int chunk) {
    return (length[chunk] & SEALED) != 0;
  }

  /** What a chunk of a partition is called where it is sealed. */
  public ChunkName name(int partition, int chunk) {
    return new ChunkName(key.shuffleId(), key.mapId(), partition, chunk - firstChunk[partition]);
  }

  /** Bytes that a chunk takes where it lies: its own, or more if it is sealed. */
  public long storedBytes(int chunk) {
    return isSealed(chunk) ? SealedFormat.sealedBytes(length(chunk)) : length[chunk];
  }

  /** Rows of a chunk. */
  public int rows(int chunk) {
    return rows[chunk];
  }

  /**
   * The checksum that was made of a chunk, as it lies there, when it was written to disk; {@link
   * io.weft.integrity.Checksum#NONE} for one in memory.
   */
  public int checksum(int chunk) {
    return checksum[chunk];
  }

  /** Bytes of the partitions [start, end). */
  public long bytes(int start, int end) {
    long sum = 0;
    for (int chunk = firstChunk[start]; chunk < firstChunk[end]; chunk++) {
      sum += length(chunk);
    }
    return sum;
  }

  /** Bytes that all chunks take where they lie. */
  public long storedBytes() {
    long sum = 0;
    for (int chunk = 0; chunk < length.length; chunk++) {
      sum += storedBytes(chunk);
    }
    return sum;
  }

  /** How many of the partitions [start, end) are not empty. */
  public int blocks(int start, int end) {
    int count = 0;
    for (int partition = start; partition < end; partition++) {
      count += firstChunk[partition + 1] > firstChunk[partition] ? 1 : 0;
    }
    return count;
  }
}
