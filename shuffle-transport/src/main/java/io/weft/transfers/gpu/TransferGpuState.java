package io.weft.transfers.gpu;

import io.weft.device.Deadline;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.transfers.ReceiveMemory;
import io.weft.transfers.ReceiveMemory.BufferStatistics;
import io.weft.transfers.TransferBuffer;
import io.weft.transfers.gpu.SharedRoom.ReleasedRooms;
import java.io.IOException;
import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The resources of a GPU from the first transfer on. Thread-safe.
 *
 * @param memory for receive buffers
 * @param pinned for staged arrays
 * @param shared for rooms that other processes map
 * @param released rooms that other processes may still have mapped
 */
record TransferGpuState(
    CudaDevice device,
    CudaMemoryPool memory,
    CudaMemoryPool pinned,
    CudaMemoryPool shared,
    GpuBuffers buffers,
    ReleasedRooms released) {
  /** The rooms of 32 pairs. Further pairs are staged through the host. */
  private static final long SHARED_BYTES = 32 * SharedRoom.BYTES;

  /** How long to wait for the other ends to release their mappings. */
  private static final Duration LINGER = Duration.ofSeconds(2);

  private static final Logger LOG = LoggerFactory.getLogger(TransferGpuState.class);

  /** Creates the pools of a device and takes ownership of it. Allocates nothing yet. */
  static TransferGpuState of(CudaDevice device, long bufferBytes, long pinnedBytes) {
    CudaMemoryPool memory = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, bufferBytes);
    return new TransferGpuState(
        device,
        memory,
        CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, pinnedBytes),
        CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, SHARED_BYTES),
        new GpuBuffers(memory),
        new ReleasedRooms());
  }

  /**
   * Frees everything, after at most 2 s. Memory that is still in use, or mapped by others, stays
   * until the process ends.
   */
  void close() {
    long out = buffers.statistics().out();
    int rooms = released.awaitAll(Deadline.after(LINGER));
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

  /** Receive buffers on a GPU, from a pool that reuses memory. Thread-safe. */
  static final class GpuBuffers implements ReceiveMemory {
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
          taken,
          Math.min(taken, pool.allocations()),
          out,
          pool.reservedBytes() - outBytes,
          pool.allocatedBytes());
    }
  }
}
