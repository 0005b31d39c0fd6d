package io.weft.spark.columns;

import io.weft.spark.columns.ChunkFormat.ChunkWriter;
import org.apache.spark.unsafe.Platform;

/**
 * State that the builders of one task share.
 *
 * @param pool source of their buffers
 * @param partitions number of partitions
 * @param scratch temporary array for values between a vector and a buffer
 */
record BuilderContext(BufferPool pool, int partitions, Scratch scratch) {
  BuilderContext(BufferPool pool, int partitions) {
    this(pool, partitions, new Scratch());
  }

  /** A growing array. Its content is valid only during the call that fills it. */
  static final class Scratch {
    private long[] words = new long[0];

    /** Returns an array of at least that many bytes. */
    long[] bytes(long bytes) {
      int needed = Math.toIntExact((bytes + 7) / 8);
      if (words.length < needed) {
        words = new long[Math.max(needed, Math.min(2 * words.length, 1 << 20))];
      }
      return words;
    }
  }

  /**
   * The validity bitmaps of a builder, per partition. A partition has no bitmap until its first
   * null.
   */
  static final class Validity {
    private final int[] nulls;
    private final PartitionBuffers bits;

    Validity(BufferPool pool, int partitions) {
      nulls = new int[partitions];
      bits = new PartitionBuffers(pool, partitions);
    }

    int nulls(int partition) {
      return nulls[partition];
    }

    /** Address of the bitmap of a partition with nulls. */
    long address(int partition) {
      return bits.address(partition);
    }

    /** Appends values that are not null. */
    void appendValid(int partition, int rows, int count) {
      if (nulls[partition] > 0) {
        Bits.appendOnes(reserve(partition, rows, count), rows, count);
      }
    }

    void appendNull(int partition, int rows) {
      long address = materialize(partition, rows, 1);
      Bits.append(address, rows, false);
      nulls[partition]++;
    }

    /**
     * Appends values, some of which may be null.
     *
     * @param mask 1 for a null, by position; null if there are no nulls
     */
    void append(int partition, int rows, byte[] mask, int from, int to) {
      int added = mask == null ? 0 : ones(mask, from, to);
      if (added == 0) {
        appendValid(partition, rows, to - from);
        return;
      }
      long address = materialize(partition, rows, to - from);
      Bits.append(address, rows, mask, from, to, 1);
      nulls[partition] += added;
    }

    /** Appends bits of another bitmap, where 0 is a null. */
    void append(int partition, int rows, long source, long from, int count) {
      int added = Bits.zeros(source, from, count);
      if (added == 0) {
        appendValid(partition, rows, count);
        return;
      }
      long address = materialize(partition, rows, count);
      Bits.append(address, rows, source, from, count);
      nulls[partition] += added;
    }

    void truncate(int partition, int rows) {
      if (nulls[partition] > 0) {
        nulls[partition] = Bits.zeros(bits.address(partition), rows);
      }
    }

    void clear(int partition, boolean release) {
      nulls[partition] = 0;
      if (release) {
        bits.release(partition);
      }
    }

    /** Bytes of the bitmap in a chunk. */
    long measure(int partition, int rows) {
      return nulls[partition] == 0 ? 0 : ChunkFormat.align(ChunkFormat.bitBytes(rows));
    }

    void write(int partition, int rows, ChunkWriter out) {
      if (nulls[partition] > 0) {
        out.bits(bits.address(partition), rows);
      }
    }

    private long reserve(int partition, int rows, int count) {
      return bits.reserve(
          partition, ChunkFormat.bitBytes(rows), ChunkFormat.bitBytes(Math.addExact(rows, count)));
    }

    private long materialize(int partition, int rows, int count) {
      long address = reserve(partition, rows, count);
      if (nulls[partition] == 0) {
        Bits.appendOnes(address, 0, rows);
      }
      return address;
    }

    private static int ones(byte[] mask, int from, int to) {
      int ones = 0;
      for (int i = from; i < to; i++) {
        ones += mask[i];
      }
      return ones;
    }
  }

  /** One growable buffer per partition, allocated when first needed. */
  static final class PartitionBuffers {
    private final BufferPool pool;
    private final long[] addresses;
    private final byte[] sizeClasses;

    PartitionBuffers(BufferPool pool, int partitions) {
      this.pool = pool;
      this.addresses = new long[partitions];
      this.sizeClasses = new byte[partitions];
    }

    /** Returns the address of a partition's buffer, or 0 if it has none. */
    long address(int partition) {
      return addresses[partition];
    }

    /**
     * Grows a partition's buffer if necessary.
     *
     * @param used bytes at the start that keep their content
     * @param bytes minimum size of the buffer
     * @return its address, which may have changed
     */
    long reserve(int partition, long used, long bytes) {
      long address = addresses[partition];
      if (address != 0 && bytes <= BufferPool.bytes(sizeClasses[partition])) {
        return address;
      }
      return grow(partition, used, bytes);
    }

    /** Frees a partition's buffer. */
    void release(int partition) {
      if (addresses[partition] != 0) {
        pool.free(addresses[partition], sizeClasses[partition]);
        addresses[partition] = 0;
      }
    }

    private long grow(int partition, long used, long bytes) {
      int sizeClass = BufferPool.sizeClass(bytes);
      long grown = pool.allocate(sizeClass);
      if (addresses[partition] != 0) {
        Platform.copyMemory(null, addresses[partition], null, grown, used);
        release(partition);
      }
      addresses[partition] = grown;
      sizeClasses[partition] = (byte) sizeClass;
      return grown;
    }
  }

  /** The 32-bit offsets of a column of strings or lists, per partition. */
  static final class PartitionOffsets {
    private final PartitionBuffers buffers;

    PartitionOffsets(BufferPool pool, int partitions) {
      buffers = new PartitionBuffers(pool, partitions);
    }

    long address(int partition) {
      return buffers.address(partition);
    }

    /** Returns the end offset of the first {@code rows} rows. */
    int end(int partition, int rows) {
      return rows == 0 ? 0 : Platform.getInt(null, buffers.address(partition) + 4L * rows);
    }

    /**
     * Reserves space for the end offsets of more values.
     *
     * @return the address of the next end offset
     */
    long reserve(int partition, int rows, int count) {
      int sum = BatchTooLargeException.add(rows, count);
      long address =
          buffers.reserve(partition, ChunkFormat.offsetBytes(rows), ChunkFormat.offsetBytes(sum));
      if (rows == 0) {
        Platform.putInt(null, address, 0);
      }
      return address + ChunkFormat.offsetBytes(rows);
    }

    /** Appends one end offset. */
    void append(int partition, int rows, int end) {
      Platform.putInt(null, reserve(partition, rows, 1), end);
    }

    /** Appends the end offsets of contiguous values, adjusted to their new start. */
    void appendRun(int partition, int rows, long source, int start, int count) {
      long target = reserve(partition, rows, count);
      int shift = end(partition, rows) - Platform.getInt(null, source + 4L * start);
      long from = source + 4L * (start + 1L);
      for (long i = 0; i < 4L * count; i += 4) {
        Platform.putInt(null, target + i, Platform.getInt(null, from + i) + shift);
      }
    }

    void release(int partition) {
      buffers.release(partition);
    }

    void write(int partition, int rows, ChunkWriter out) {
      if (rows == 0) {
        out.noOffsets();
      } else {
        out.buffer(buffers.address(partition), ChunkFormat.offsetBytes(rows));
      }
    }
  }
}
