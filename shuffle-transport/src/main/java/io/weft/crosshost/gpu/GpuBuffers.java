package io.weft.crosshost.gpu;

import io.weft.crosshost.buffer.BufferStatistics;
import io.weft.crosshost.buffer.ReceiveMemory;
import io.weft.crosshost.buffer.TransferBuffer;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import java.io.IOException;

/** Receive buffers on a GPU, from a pool that uses them again. Thread-safe. */
final class GpuBuffers implements ReceiveMemory {
  private final CudaMemoryPool pool;
  private long taken;
  private long allocated;
  private long out;
  private long outBytes;

  /**
   * Buffers of a pool.
   *
   * @param pool used by nobody else; stays its owner's to close
   */
  GpuBuffers(CudaMemoryPool pool) {
    this.pool = pool;
  }

  @Override
  public synchronized TransferBuffer take(long bytes) throws IOException {
    long reserved = pool.reservedBytes();
    CudaMemory memory;
    try {
      memory = pool.take(bytes);
    } catch (CudaException | IllegalStateException e) {
      throw new IOException(e.getMessage(), e);
    }
    taken++;
    allocated += pool.reservedBytes() > reserved ? 1 : 0;
    out++;
    outBytes += bytes;
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

  @Override
  public synchronized BufferStatistics statistics() {
    return new BufferStatistics(taken, allocated, out, pool.reservedBytes() - outBytes);
  }
}
