package io.weft.spark.rapids;

import ai.rapids.cudf.CudaMemoryBuffer;
import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.MemoryBuffer;

/** Where bounce buffers come from. */
@FunctionalInterface
interface BounceMemory {
  /** Memory of this executor's GPU; the caller closes it. */
  MemoryBuffer allocate(long bytes);

  /**
   * cudf's: from its pool, so that it counts as spark-rapids' memory. Memory of the driver's
   * stream-ordered pool is not for other GPUs to reach, so with that pool it is plain memory beside
   * it.
   *
   * @param pool as spark-rapids' setting names it
   */
  static BounceMemory ofCudf(String pool) {
    return pool.equalsIgnoreCase("ASYNC")
        ? CudaMemoryBuffer::allocate
        : DeviceMemoryBuffer::allocate;
  }
}
