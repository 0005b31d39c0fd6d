package io.weft.crosshost.gpu;

import io.weft.device.Deadline;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemoryPool;
import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What is there of a GPU from the first transfer on. Thread-safe.
 *
 * @param memory for receive buffers
 * @param pinned for what is staged
 * @param shared for what other processes map
 * @param departed what they may still have mapped
 */
record OpenedGpu(
    CudaDevice device,
    CudaMemoryPool memory,
    CudaMemoryPool pinned,
    CudaMemoryPool shared,
    GpuBuffers buffers,
    DepartedRooms departed) {
  /** Rooms of 32 pairs; another pair is staged through the host. */
  private static final long SHARED_BYTES = 32 * SharedRoom.BYTES;

  /** The other ends let go when they hear that this one has ended. */
  private static final Duration LINGER = Duration.ofSeconds(2);

  private static final Logger LOG = LoggerFactory.getLogger(OpenedGpu.class);

  /** Takes the pools of a device that was opened for it; nothing is allocated yet. */
  static OpenedGpu of(CudaDevice device, long bufferBytes, long pinnedBytes) {
    CudaMemoryPool memory = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, bufferBytes);
    return new OpenedGpu(
        device,
        memory,
        CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, pinnedBytes),
        CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, SHARED_BYTES),
        new GpuBuffers(memory),
        new DepartedRooms());
  }

  /**
   * Gives everything back, after at most 2 s; what is still received into, or mapped elsewhere,
   * stays until the process ends.
   */
  void close() {
    long out = buffers.statistics().out();
    int rooms = departed.awaitAll(Deadline.after(LINGER));
    pinned.close();
    memory.close();
    shared.close();
    if (out == 0 && rooms == 0) {
      device.close();
    } else {
      LOG.warn(
          "{} receive buffers on {} are still held, and {} rooms mapped by others; its context"
              + " stays",
          out,
          device,
          rooms);
    }
  }
}
