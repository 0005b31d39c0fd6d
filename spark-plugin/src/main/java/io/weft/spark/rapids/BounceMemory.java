package io.weft.spark.rapids;

import ai.rapids.cudf.CudaMemoryBuffer;
import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.MemoryBuffer;

/** Allocates the memory of bounce buffers. */
@FunctionalInterface
interface BounceMemory {
  /** Allocates memory of this executor's GPU. The caller closes it. */
  MemoryBuffer allocate(long bytes);

  /**
   * cudf's memory: from its pool, so that it counts as spark-rapids' memory. Other GPUs cannot
   * reach memory of the driver's stream-ordered pool, so with that pool it is plain memory outside
   * of the pool.
   *
   * @param pool the value of spark-rapids' setting
   */
  static BounceMemory ofCudf(String pool) {
    return pool.equalsIgnoreCase("ASYNC")
        ? CudaMemoryBuffer::allocate
        : DeviceMemoryBuffer::allocate;
  }
}
