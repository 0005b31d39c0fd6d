package io.weft.device.cuda;

/**
 * Where a {@link CudaMemoryPool} has its segments from. Calls may wait for all that runs on the
 * device, so the pool asks rarely, and holds no lock meanwhile. Implementations are thread-safe.
 */
public interface CudaMemorySource {
  /** Such as "device memory", for messages. */
  String what();

  /** Segments are multiples of so many bytes, a power of two. */
  long granularity();

  /**
   * Allocates a segment.
   *
   * @param bytes a multiple of the granularity
   * @return its address, aligned to 512
   * @throws CudaException when there is no more
   */
  long allocate(CudaDevice device, long bytes);

  /**
   * Frees what was allocated.
   *
   * @throws CudaException when the driver refuses
   */
  void free(CudaDevice device, long address, long bytes);
}
