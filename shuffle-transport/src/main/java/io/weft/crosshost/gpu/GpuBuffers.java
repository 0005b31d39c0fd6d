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

  /** The pool may have to ask the driver, which takes its time: nothing is locked meanwhile. */
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

  /** What is being allocated now may be counted a moment before what it is taken for. */
  @Override
  public synchronized BufferStatistics statistics() {
    return new BufferStatistics(
        taken, Math.min(taken, pool.allocations()), out, pool.reservedBytes() - outBytes);
  }
}
