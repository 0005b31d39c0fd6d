package io.weft.crosshost.gpu;

import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemoryPool;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What is there of a GPU from the first transfer on. Thread-safe.
 *
 * @param memory for receive buffers
 * @param pinned for what is staged
 */
record OpenedGpu(
    CudaDevice device, CudaMemoryPool memory, CudaMemoryPool pinned, GpuBuffers buffers) {
  private static final Logger LOG = LoggerFactory.getLogger(OpenedGpu.class);

  /** Takes the pools of a device that was opened for it; nothing is allocated yet. */
  static OpenedGpu of(CudaDevice device, long bufferBytes, long pinnedBytes) {
    CudaMemoryPool memory = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, bufferBytes);
    return new OpenedGpu(
        device,
        memory,
        CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, pinnedBytes),
        new GpuBuffers(memory));
  }

  /** Gives everything back; what is still received into stays until the process ends. */
  void close() {
    long out = buffers.statistics().out();
    pinned.close();
    memory.close();
    if (out == 0) {
      device.close();
    } else {
      LOG.warn("{} receive buffers on {} are still held; its context stays", out, device);
    }
  }
}
