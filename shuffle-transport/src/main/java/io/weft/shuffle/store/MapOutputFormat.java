package io.weft.shuffle.store;

import io.weft.shuffle.store.ChunkEncryptor.EncryptedChunkFormat;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Encodes and decodes index files. The file {@code output-<shuffle id>-<map id>} publishes a map
 * output when it appears. All numbers are little-endian.
 *
 * <pre>
 *   0               4               8               12              16
 *  +---------------+---------------+---------------+---------------+
 *  | magic "WFTX"  | version       | checksum      | shuffle id    |
 *  +---------------+---------------+---------------+---------------+
 *  | map id                        | segment bytes                 |
 *  +---------------+---------------+---------------+---------------+
 *  | partitions P  | chunks C      | first chunk of partition 0..P |  (P + 1) x 4
 *  +---------------+---------------+-------------------------------+
 *  | segment of chunk 0..C-1                                       |  C x 4
 *  +---------------------------------------------------------------+
 *  | rows of chunk 0..C-1                                          |  C x 4
 *  +---------------------------------------------------------------+
 *  | checksum of chunk 0..C-1 if it is on disk, else 0             |  C x 4
 *  +---------------------------------------------------------------+
 *  | offset of chunk 0..C-1 in its segment, a multiple of 64       |  C x 8
 *  +---------------------------------------------------------------+
 *  | bytes of chunk 0..C-1, at least 1; highest bit: encrypted     |  C x 8
 *  +---------------------------------------------------------------+
 * </pre>
 *
 * The checksum is the CRC32C of all bytes after it. Chunks are sorted by partition; the first chunk
 * of partition P is C. An encrypted chunk is stored in {@link EncryptedChunkFormat}. Its checksum
 * covers the encrypted bytes; its length is that of the plain bytes.
 */
public final class MapOutputFormat {
  /** Incremented with every change of the layout. */
  public static final int VERSION = 4;

  /** The most bytes of an index, so that a damaged file cannot cause a larger allocation. */
  public static final int MAX_BYTES = 1 << 30;

  /** The most bytes of a segment, because it is mapped as one buffer. */
  private static final long MAX_SEGMENT_BYTES = Integer.MAX_VALUE;

  /** The most bytes of a chunk, because memory is allocated in multiples of 64 bytes. */
  private static final long MAX_CHUNK_BYTES = MAX_SEGMENT_BYTES & -64;

  private static final Pattern FILE_NAME = Pattern.compile("output-(\\d+)-(\\d+)");
  private static final int MAGIC = 0x58544657;
  private static final int CHECKED_FROM = 12;
  private static final int HEADER_BYTES = 40;
  private static final int CHUNK_BYTES = 28;

  private MapOutputFormat() {}

  /** The file name of a map output's index. */
  public static String fileName(BlockKey key) {
    return "output-" + key.shuffleId() + "-" + key.mapId();
  }

  /** The key of the output whose index has this file name; empty for other files. */
  static Optional<BlockKey> key(String fileName) {
    Matcher name = FILE_NAME.matcher(fileName);
    if (!name.matches()) {
      return Optional.empty();
    }
    try {
      int shuffleId = Integer.parseInt(name.group(1));
      return Optional.of(new BlockKey(shuffleId, Long.parseLong(name.group(2))));
    } catch (NumberFormatException e) {
      return Optional.empty();
    }
  }

  /**
   * Encodes an index.
   *
   * @return a buffer ready to be read, at position 0
   * @throws IllegalArgumentException if the index would exceed {@link #MAX_BYTES}
   */
  public static ByteBuffer encode(MapOutput output) {
    ByteBuffer bytes = allocate(size(output.partitions(), output.chunks()), output.key());
    bytes.putInt(MAGIC).putInt(VERSION).putInt(0).putInt(output.key().shuffleId());
    bytes.putLong(output.key().mapId()).putLong(output.segmentBytes());
    bytes.putInt(output.partitions()).putInt(output.chunks());
    putChunks(output, bytes);
    bytes.flip();
    return bytes.putInt(CHECKED_FROM - 4, checksum(bytes));
  }

  private static ByteBuffer allocate(long size, BlockKey key) {
    if (size > MAX_BYTES) {
      throw new IllegalArgumentException(
          "the index of "
              + key
              + " would have "
              + size
              + " bytes; at most "
              + MAX_BYTES
              + " are possible. Use fewer partitions or larger chunks");
    }
    return ByteBuffer.allocate((int) size).order(ByteOrder.LITTLE_ENDIAN);
  }

  /** Whole arrays, because a loop of puts takes the JIT compiler long. */
  private static void putChunks(MapOutput output, ByteBuffer bytes) {
    int chunks = output.chunks();
    int firsts = output.partitions() + 1;
    int[] numbers = new int[firsts + 3 * chunks];
    for (int partition = 0; partition < firsts; partition++) {
      numbers[partition] = output.firstChunk(partition);
    }
    long[] places = new long[2 * chunks];
    for (int chunk = 0; chunk < chunks; chunk++) {
      numbers[firsts + chunk] = output.segment(chunk);
      numbers[firsts + chunks + chunk] = output.rows(chunk);
      numbers[firsts + 2 * chunks + chunk] = output.checksum(chunk);
      places[chunk] = output.offset(chunk);
      places[chunks + chunk] =
          output.length(chunk) | (output.isEncrypted(chunk) ? MapOutput.ENCRYPTED : 0);
    }
    bytes.asIntBuffer().put(numbers);
    bytes.position(bytes.position() + Integer.BYTES * numbers.length);
    bytes.asLongBuffer().put(places);
    bytes.position(bytes.position() + Long.BYTES * places.length);
  }

  /**
   * Decodes an index from the buffer's position to its limit.
   *
   * @param expected the map output it must describe
   * @throws CorruptIndexException if it is not a complete, intact index of that output and version
   */
  public static MapOutput decode(ByteBuffer source, BlockKey expected)
      throws CorruptIndexException {
    ByteBuffer bytes = source.slice().order(ByteOrder.LITTLE_ENDIAN);
    requireIntact(bytes, expected);
    BlockKey key = new BlockKey(bytes.getInt(12), bytes.getLong(16));
    require(key.equals(expected), expected, "it describes " + key + ", chunks", bytes.getInt(36));
    long segmentBytes = bytes.getLong(24);
    require(segmentBytes > 0, expected, "segment bytes", segmentBytes);
    int partitions = bytes.getInt(32);
    int chunks = bytes.getInt(36);
    require(partitions >= 0, expected, "partitions", partitions);
    require(chunks >= 0, expected, "chunks", chunks);
    long size = size(partitions, chunks);
    require(
        size == bytes.limit(), expected, "its length should be " + size + ", is", bytes.limit());
    bytes.position(HEADER_BYTES);
    int[] firstChunk = ints(bytes, partitions + 1);
    int[] segment = ints(bytes, chunks);
    int[] rows = ints(bytes, chunks);
    int[] checksum = ints(bytes, chunks);
    long[] offset = longs(bytes, chunks);
    long[] length = longs(bytes, chunks);
    requireOrdered(key, firstChunk, chunks);
    requireSound(key, segment, rows, offset, length);
    return new MapOutput(key, segmentBytes, firstChunk, segment, rows, checksum, offset, length);
  }

  private static void requireIntact(ByteBuffer bytes, BlockKey key) throws CorruptIndexException {
    require(bytes.limit() >= HEADER_BYTES, key, "it is truncated, bytes", bytes.limit());
    require(bytes.getInt(0) == MAGIC, key, "it is not an index, first bytes", bytes.getInt(0));
    int version = bytes.getInt(4);
    require(
        version == VERSION, key, "this executor reads version " + VERSION + ", it has", version);
    int stored = bytes.getInt(CHECKED_FROM - 4);
    require(stored == checksum(bytes), key, "its checksum is wrong", stored);
  }

  private static void requireOrdered(BlockKey key, int[] firstChunk, int chunks)
      throws CorruptIndexException {
    int before = 0;
    for (int partition = 0; partition < firstChunk.length; partition++) {
      int first = firstChunk[partition];
      if (first < before || first > chunks || (partition == 0 && first != 0)) {
        throw corrupt(key, "first chunk of partition " + partition, first);
      }
      before = first;
    }
    require(before == chunks, key, "chunks beyond the last partition", before);
  }

  private static void requireSound(
      BlockKey key, int[] segment, int[] rows, long[] offset, long[] length)
      throws CorruptIndexException {
    for (int chunk = 0; chunk < segment.length; chunk++) {
      long bytes = length[chunk] & ~MapOutput.ENCRYPTED;
      boolean sound =
          segment[chunk] >= 0
              && rows[chunk] >= 0
              && offset[chunk] >= 0
              && offset[chunk] % 64 == 0
              && bytes > 0
              && bytes <= MAX_CHUNK_BYTES
              && offset[chunk] <= MAX_SEGMENT_BYTES - storedBytes(length[chunk]);
      if (!sound) {
        throw corrupt(key, "chunk with an invalid location", chunk);
      }
    }
  }

  private static long storedBytes(long length) {
    return length < 0 ? EncryptedChunkFormat.encryptedBytes(length & ~MapOutput.ENCRYPTED) : length;
  }

  private static void require(boolean condition, BlockKey key, String what, long value)
      throws CorruptIndexException {
    if (!condition) {
      throw corrupt(key, what, value);
    }
  }

  private static CorruptIndexException corrupt(BlockKey key, String what, long value) {
    return new CorruptIndexException("index of " + key + ": " + what + ": " + value);
  }

  private static long size(int partitions, int chunks) {
    return HEADER_BYTES + 4L * (partitions + 1L) + (long) CHUNK_BYTES * chunks;
  }

  private static int checksum(ByteBuffer bytes) {
    return Checksum.of(bytes.duplicate().position(CHECKED_FROM));
  }

  private static int[] ints(ByteBuffer bytes, int count) {
    int[] values = new int[count];
    bytes.asIntBuffer().get(values);
    bytes.position(bytes.position() + 4 * count);
    return values;
  }

  private static long[] longs(ByteBuffer bytes, int count) {
    long[] values = new long[count];
    bytes.asLongBuffer().get(values);
    bytes.position(bytes.position() + 8 * count);
    return values;
  }

  /** Thrown if an index file is damaged, of another version or of another map output. */
  public static final class CorruptIndexException extends IOException {
    private static final long serialVersionUID = 1L;

    CorruptIndexException(String message) {
      super(message);
    }
  }
}
