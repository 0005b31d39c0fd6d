package io.weft.transfers.gpu;

import io.weft.device.Deadline;
import io.weft.device.UnavailableLibraryException;
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
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
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

  /**
   * Opens a GPU on first use, on a daemon thread "weft-gpu-open". If the driver does not answer,
   * each caller waits until its timeout and no lock is held. After a failure the next caller
   * retries. Thread-safe. Owns the opened GPU.
   */
  static final class GpuOpener implements AutoCloseable {
    private final String what;
    private final Supplier<TransferGpuState> open;
    private final Duration timeout;
    private CompletableFuture<TransferGpuState> opening;
    private boolean closed;

    /**
     * Creates a GPU that is not open.
     *
     * @param what name of the GPU, for messages
     * @param open calls the driver
     * @param timeout how long each caller waits
     */
    GpuOpener(String what, Supplier<TransferGpuState> open, Duration timeout) {
      this.what = what;
      this.open = open;
      this.timeout = timeout;
    }

    /**
     * The GPU. Opens it if it is not open.
     *
     * @throws IllegalStateException if this was closed
     * @throws UnavailableLibraryException if the driver does not answer in time
     */
    TransferGpuState get() {
      CompletableFuture<TransferGpuState> mine = null;
      CompletableFuture<TransferGpuState> shared;
      synchronized (this) {
        if (closed) {
          throw new IllegalStateException(what + " was closed");
        }
        if (opening == null) {
          mine = new CompletableFuture<>();
          opening = mine;
        }
        shared = opening;
      }
      if (mine != null) {
        start(mine);
      }
      return await(shared);
    }

    private void start(CompletableFuture<TransferGpuState> mine) {
      Thread thread = new Thread(() -> open(mine), "weft-gpu-open");
      thread.setDaemon(true);
      thread.start();
    }

    private void open(CompletableFuture<TransferGpuState> mine) {
      try {
        mine.complete(open.get());
      } catch (RuntimeException | Error e) {
        synchronized (this) {
          opening = null;
        }
        mine.completeExceptionally(e);
      }
    }

    private TransferGpuState await(CompletableFuture<TransferGpuState> shared) {
      try {
        return shared.get(timeout.toNanos(), TimeUnit.NANOSECONDS);
      } catch (ExecutionException e) {
        if (e.getCause() instanceof RuntimeException known) {
          throw known;
        }
        throw new IllegalStateException(what + " cannot be opened: " + e.getCause(), e.getCause());
      } catch (TimeoutException e) {
        throw new UnavailableLibraryException(
            "the NVIDIA driver did not open %s within %s"
                .formatted(what, Deadline.describe(timeout.toNanos())));
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException("interrupted while " + what + " was being opened", e);
      }
    }

    /** The GPU, if it is open now. */
    synchronized Optional<TransferGpuState> now() {
      return opening == null || opening.isCompletedExceptionally()
          ? Optional.empty()
          : Optional.ofNullable(opening.getNow(null));
    }

    /** A GPU that is being opened is closed as soon as it is open. */
    @Override
    public void close() {
      CompletableFuture<TransferGpuState> last;
      synchronized (this) {
        closed = true;
        last = opening;
        opening = null;
      }
      if (last != null) {
        CompletableFuture<Void> unused = last.thenAccept(TransferGpuState::close);
      }
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
          taken, Math.min(taken, pool.allocations()), out, pool.reservedBytes() - outBytes);
    }
  }
}
