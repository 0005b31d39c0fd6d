package io.weft.spark.columns;

/**
 * The binary format of a batch in a chunk. A chunk has one or more consecutive batches. Each starts
 * at a multiple of 64 bytes, and its length is a multiple of 64 bytes. All numbers are
 * little-endian.
 *
 * <pre>
 *   0                4                8                                16
 *  +----------------+----------------+--------------------------------+
 *  | magic, version | rows           | bytes of the batch, all of it  |
 *  +----------------+----------------+--------------------------------+
 *  | nulls of node 0| extent of it   | nulls of node 1| extent of it  |  ... zeros to a multiple of 64
 *  +----------------+----------------+----------------+---------------+
 *  | buffers of node 0, each padded with zeros to a multiple of 64    |
 *  | buffers of node 1 ...                                            |
 *  +------------------------------------------------------------------+
 * </pre>
 *
 * <p>Nodes are the columns and their children, depth first. A top-level node has as many values as
 * the batch has rows. A struct's field has as many values as the struct. A list's element and a
 * map's key and value have as many as the extent of the list or map. Buffers have Arrow's format
 * and order, so that a body can be wrapped as Arrow vectors without a copy:
 *
 * <ul>
 *   <li>validity, if the node has nulls: one bit per value, 0 for a null, lowest bit first
 *   <li>booleans: one bit each; other values of fixed width: contiguous
 *   <li>strings and binary: 32-bit offsets, one more than values, followed by the bytes; the extent
 *       is the number of bytes
 *   <li>lists and maps: 32-bit offsets, one more than values; the extent is the number of elements.
 *       A map's entries, a struct in Arrow, have no node of their own: they are never null
 *   <li>structs, calendar intervals (months, days, microseconds), variants (value, metadata): no
 *       more buffers of their own. The null type: none at all
 * </ul>
 */
final class ChunkFormat {
  /** "WFC" and the version of the format. */
  static final int MAGIC = 'W' | 'F' << 8 | 'C' << 16 | 1 << 24;

  static final int ALIGNMENT = 64;
  static final int ROWS_OFFSET = 4;
  static final int BYTES_OFFSET = 8;
  static final int NODES_OFFSET = 16;
  static final int NODE_BYTES = 8;
  static final int EXTENT_OFFSET = 4;

  private ChunkFormat() {}

  /** Bytes before the first buffer. */
  static long headerBytes(int nodes) {
    return align(NODES_OFFSET + (long) NODE_BYTES * nodes);
  }

  static long align(long bytes) {
    return (bytes + ALIGNMENT - 1) & -ALIGNMENT;
  }

  /** Bytes of a buffer of that many bits, before padding. */
  static long bitBytes(int bits) {
    return (bits + 7L) >> 3;
  }

  /** Bytes of the offsets of that many values, before padding. */
  static long offsetBytes(int values) {
    return 4L * (values + 1L);
  }
}
