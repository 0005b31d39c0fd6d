package io.weft.crosshost.gpu;

import io.weft.crosshost.buffer.BufferStatistics;
import io.weft.crosshost.buffer.ReceiveMemory;
import io.weft.crosshost.buffer.TransferBuffer;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import java.io.IOException;

/** Receive buffers on a GPU, from a pool that reuses memory. Thread-safe. */
final class GpuBuffers implements ReceiveMemory {
  private final CudaMemoryPool pool;
  private long taken;
  private long out;
  private long outBytes;

  /**
   * Takes buffers from a pool.
   *
   * @param pool not shared with other users; its owner closes it
   */
  GpuBuffers(CudaMemoryPool pool) {
    this.pool = pool;
  }

  /** Holds no lock while the pool allocates, because a call to the driver may be slow. */
  @Override
  public TransferBuffer take(long bytes) throws IOException {
    CudaMemory memory;
    try {
      memory = pool.take(bytes);
    } catch (CudaException | IllegalStateException e) {
      throw new IOException(e.getMessage(), e);
    }
    synchronized (this) {
      taken++;
      out++;
      outBytes += bytes;
    }
    return new TransferBuffer(memory.address(), bytes, () -> takeBack(memory));
  }

  private void takeBack(CudaMemory memory) {
    long bytes = memory.bytes();
    memory.close();
    synchronized (this) {
      out--;
      outBytes -= bytes;
    }
  }

  /** A buffer under allocation may be counted as allocated before it is counted as taken. */
  @Override
  public synchronized BufferStatistics statistics() {
    return new BufferStatistics(
        taken, Math.min(taken, pool.allocations()), out, pool.reservedBytes() - outBytes);
  }
}
