package io.weft.spark.columns;

import org.apache.spark.unsafe.Platform;

/** One growable buffer per partition; none until it is first needed. */
final class PartitionBuffers {
  private final BufferPool pool;
  private final long[] addresses;
  private final byte[] sizeClasses;

  PartitionBuffers(BufferPool pool, int partitions) {
    this.pool = pool;
    this.addresses = new long[partitions];
    this.sizeClasses = new byte[partitions];
  }

  /** The address of a partition's buffer, 0 if it has none. */
  long address(int partition) {
    return addresses[partition];
  }

  /**
   * Makes room.
   *
   * @param used bytes at the start that must keep their content
   * @param bytes that the buffer is to hold at least
   * @return its address, which may have changed
   */
  long reserve(int partition, long used, long bytes) {
    long address = addresses[partition];
    if (address != 0 && bytes <= BufferPool.bytes(sizeClasses[partition])) {
      return address;
    }
    return grow(partition, used, bytes);
  }

  /** Gives a partition's buffer back to the pool. */
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
