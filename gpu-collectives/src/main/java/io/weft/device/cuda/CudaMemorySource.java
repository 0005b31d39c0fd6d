package io.weft.device.cuda;

/**
 * Allocates the segments of a {@link CudaMemoryPool}. Calls may wait for all work on the device, so
 * the pool calls rarely and holds no lock meanwhile. Implementations are thread-safe.
 */
public interface CudaMemorySource {
  /** A name for messages, such as "device memory". */
  String what();

  /** The granule of segment lengths in bytes, a power of two. */
  long granularity();

  /**
   * Allocates a segment.
   *
   * @param bytes a multiple of the granularity
   * @return its address, aligned to 512
   * @throws CudaException when there is no more memory
   */
  long allocate(CudaDevice device, long bytes);

  /**
   * Frees a segment.
   *
   * @throws CudaException when the driver refuses
   */
  void free(CudaDevice device, long address, long bytes);
}
