package io.weft.spark.columns;

import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.ChunkReader;
import org.apache.spark.unsafe.Platform;

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

  /** Supplies a reader's chunks. A chunk stays readable until the second next() after it. */
  interface ChunkSource extends AutoCloseable {
    /** Advances to the next chunk; false if there is none. */
    boolean next() throws BlockFetchException;

    /** Makes the calling thread the one that reads: see {@link ChunkReader#use()}. */
    default void use() {}

    long address();

    long length();

    /** Describes the chunk, for errors. */
    String describe();

    @Override
    void close();

    /** Adapts the chunks that an exchange fetches. */
    static ChunkSource of(ChunkReader reader) {
      return new ChunkSource() {
        @Override
        public boolean next() throws BlockFetchException {
          return reader.next();
        }

        @Override
        public void use() {
          reader.use();
        }

        @Override
        public long address() {
          return reader.address();
        }

        @Override
        public long length() {
          return reader.length();
        }

        @Override
        public String describe() {
          return "partition " + reader.partition() + " of " + reader.request();
        }

        @Override
        public void close() {
          reader.close();
        }
      };
    }
  }

  /**
   * Iterates over the batches of a chunk, their nodes and buffers, and checks that all are within
   * the chunk. It does not check the values. Reused.
   */
  static final class ChunkCursor {
    private ChunkSource source;
    private long next;
    private long end;
    private long batch;
    private long batchEnd;
    private long node;
    private long nodesEnd;
    private long buffer;

    /** Starts with the current chunk of a source. */
    void open(ChunkSource chunk) {
      source = chunk;
      next = chunk.address();
      end = next + chunk.length();
      check((next & (ChunkFormat.ALIGNMENT - 1)) == 0, "it does not start at a multiple of 64");
    }

    /** Whether there is another batch. */
    boolean hasNext() {
      return next < end;
    }

    /**
     * Advances to the next batch.
     *
     * @return its rows
     * @throws IllegalStateException if the chunk does not have this format and number of nodes
     */
    int next(int nodes) {
      batch = next;
      long header = ChunkFormat.headerBytes(nodes);
      check(end - batch >= header, "its header is cut off");
      check(
          Platform.getInt(null, batch) == ChunkFormat.MAGIC, "it is of another format or version");
      int rows = Platform.getInt(null, batch + ChunkFormat.ROWS_OFFSET);
      long bytes = Platform.getLong(null, batch + ChunkFormat.BYTES_OFFSET);
      check(rows >= 0, "it has a negative number of rows");
      check(bytes >= header && bytes <= end - batch, "a batch ends outside it");
      check(bytes % ChunkFormat.ALIGNMENT == 0, "a batch does not end at a multiple of 64");
      batchEnd = batch + bytes;
      next = batchEnd;
      node = batch + ChunkFormat.NODES_OFFSET - ChunkFormat.NODE_BYTES;
      nodesEnd = batch + ChunkFormat.NODES_OFFSET + (long) ChunkFormat.NODE_BYTES * nodes;
      buffer = batch + header;
      return rows;
    }

    /** Bytes of the batch, including its header. */
    long batchBytes() {
      return batchEnd - batch;
    }

    /** Checks that the current batch has no further nodes or bytes. */
    void end() {
      check(node + ChunkFormat.NODE_BYTES == nodesEnd, "a batch has more nodes than its schema");
      check(buffer == batchEnd, "a batch has bytes that belong to no column");
    }

    void nextNode() {
      node += ChunkFormat.NODE_BYTES;
      check(node < nodesEnd, "a batch has fewer nodes than its schema");
    }

    int nulls() {
      return Platform.getInt(null, node);
    }

    int extent() {
      return Platform.getInt(null, node + ChunkFormat.EXTENT_OFFSET);
    }

    /** Returns the address of the next buffer, of that many bytes before padding. */
    long buffer(long bytes) {
      long address = buffer;
      check(bytes >= 0 && bytes <= batchEnd - address, "a column ends outside its batch");
      buffer = address + ChunkFormat.align(bytes);
      return address;
    }

    /**
     * Returns the address of the next buffer, with the offsets of that many values up to an extent.
     */
    long offsets(int values, int extent) {
      long address = buffer(ChunkFormat.offsetBytes(values));
      check(
          Platform.getInt(null, address) == 0
              && Platform.getInt(null, address + 4L * values) == extent,
          "the offsets of a column do not span its values");
      return address;
    }

    private void check(boolean holds, String otherwise) {
      if (!holds) {
        throw new IllegalStateException(
            "A chunk of " + source.describe() + " cannot be read: " + otherwise);
      }
    }
  }

  /**
   * Writes batches in {@link ChunkFormat}: node by node, each followed by its buffers. The caller
   * measures the batch and allocates the memory. {@link #end} checks the measure; there are no
   * other checks.
   */
  static final class ChunkWriter {
    private long start;
    private long node;
    private long buffer;

    /** Starts a batch at an address that is a multiple of 64. */
    void begin(long address, int rows, int nodes, long bytes) {
      start = address;
      node = address + ChunkFormat.NODES_OFFSET;
      buffer = address + ChunkFormat.headerBytes(nodes);
      Platform.putInt(null, address, ChunkFormat.MAGIC);
      Platform.putInt(null, address + ChunkFormat.ROWS_OFFSET, rows);
      Platform.putLong(null, address + ChunkFormat.BYTES_OFFSET, bytes);
      zero(node + (long) ChunkFormat.NODE_BYTES * nodes, buffer);
    }

    /** Writes the header of the next node. */
    void node(int nulls, int extent) {
      Platform.putInt(null, node, nulls);
      Platform.putInt(null, node + ChunkFormat.EXTENT_OFFSET, extent);
      node += ChunkFormat.NODE_BYTES;
    }

    /** Copies a buffer. */
    void buffer(long source, long bytes) {
      Platform.copyMemory(null, source, null, buffer, bytes);
      pad(buffer + bytes);
    }

    /** Copies a buffer of bits and clears the bits after the last one. */
    void bits(long source, int bits) {
      long bytes = ChunkFormat.bitBytes(bits);
      Platform.copyMemory(null, source, null, buffer, bytes);
      if ((bits & 7) != 0) {
        long last = buffer + bytes - 1;
        byte used = (byte) (Platform.getByte(null, last) & ((1 << (bits & 7)) - 1));
        Platform.putByte(null, last, used);
      }
      pad(buffer + bytes);
    }

    /** Writes the offsets of no values: a single zero. */
    void noOffsets() {
      Platform.putInt(null, buffer, 0);
      pad(buffer + 4);
    }

    /** Ends the batch. */
    void end() {
      long written = buffer - start;
      long measured = Platform.getLong(null, start + ChunkFormat.BYTES_OFFSET);
      if (written != measured) {
        throw new IllegalStateException(
            "A batch was measured as " + measured + " bytes and written as " + written);
      }
    }

    private void pad(long end) {
      buffer = start + ChunkFormat.align(end - start);
      zero(end, buffer);
    }

    private static void zero(long from, long to) {
      long at = from;
      for (; (at & 7) != 0 && at < to; at++) {
        Platform.putByte(null, at, (byte) 0);
      }
      for (; at < to; at += 8) {
        Platform.putLong(null, at, 0L);
      }
    }
  }
}
