package io.weft.spark.columns;

/**
 * The validity bitmaps of a builder, per partition. A partition has no bitmap until its first null.
 */
final class Validity {
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
