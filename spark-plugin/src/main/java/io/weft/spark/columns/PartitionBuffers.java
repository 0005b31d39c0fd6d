package io.weft.spark.columns;

import org.apache.spark.unsafe.Platform;

/** One growable buffer per partition, allocated when first needed. */
final class PartitionBuffers {
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
