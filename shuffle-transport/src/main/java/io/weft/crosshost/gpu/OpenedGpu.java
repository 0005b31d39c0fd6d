package io.weft.crosshost.gpu;

import io.weft.device.Deadline;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemoryPool;
import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The resources of a GPU from the first transfer on. Thread-safe.
 *
 * @param memory for receive buffers
 * @param pinned for staged arrays
 * @param shared for rooms that other processes map
 * @param departed rooms that other processes may still have mapped
 */
record OpenedGpu(
    CudaDevice device,
    CudaMemoryPool memory,
    CudaMemoryPool pinned,
    CudaMemoryPool shared,
    GpuBuffers buffers,
    DepartedRooms departed) {
  /** The rooms of 32 pairs. Further pairs are staged through the host. */
  private static final long SHARED_BYTES = 32 * SharedRoom.BYTES;

  /** How long to wait for the other ends to release their mappings. */
  private static final Duration LINGER = Duration.ofSeconds(2);

  private static final Logger LOG = LoggerFactory.getLogger(OpenedGpu.class);

  /** Creates the pools of a device and takes ownership of it. Allocates nothing yet. */
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
   * Frees everything, after at most 2 s. Memory that is still in use, or mapped by others, stays
   * until the process ends.
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
