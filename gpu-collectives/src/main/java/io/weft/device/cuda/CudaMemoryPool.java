package io.weft.device.cuda;

import io.weft.memory.Bytes;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Device memory, or pinned host memory, that is used again and again: allocating either stops the
 * whole device. Blocks are powers of two and stay allocated until the pool is closed. Thread-safe.
 */
public final class CudaMemoryPool implements AutoCloseable {
  /** Which memory. */
  public enum Kind {
    DEVICE("device memory"),
    /** Host memory that the device copies from and to by itself. */
    PINNED("pinned host memory");

    private final String text;

    Kind(String text) {
      this.text = text;
    }

    @Override
    public String toString() {
      return text;
    }
  }

  private static final Logger LOG = LoggerFactory.getLogger(CudaMemoryPool.class);
  private static final int SMALLEST_BYTES = 4096;
  private static final int PORTABLE = 1;
  private static final long LARGEST_BYTES = 1L << 40;

  private final CudaDevice device;
  private final Kind kind;
  private final long budgetBytes;
  private final Map<Long, Deque<Long>> free = new HashMap<>();
  private long reservedBytes;
  private int taken;
  private boolean closed;

  private CudaMemoryPool(CudaDevice device, Kind kind, long budgetBytes) {
    this.device = device;
    this.kind = kind;
    this.budgetBytes = budgetBytes;
  }

  /**
   * An empty pool.
   *
   * @param budgetBytes the most that it allocates
   */
  public static CudaMemoryPool open(CudaDevice device, Kind kind, long budgetBytes) {
    return new CudaMemoryPool(device, kind, budgetBytes);
  }

  /**
   * Takes memory, whatever it holds.
   *
   * @param bytes one or more
   * @throws CudaException when the driver has no more
   * @throws IllegalStateException when the budget is used up or the pool was closed
   */
  public CudaMemory take(long bytes) {
    if (bytes < 1 || bytes > LARGEST_BYTES) {
      throw new IllegalArgumentException(bytes + " bytes are not 1 to " + LARGEST_BYTES);
    }
    long size = Math.max(SMALLEST_BYTES, Long.highestOneBit(2 * bytes - 1));
    return new CudaMemory(this, block(size), size, bytes);
  }

  private synchronized long block(long size) {
    if (closed) {
      throw new IllegalStateException("the pool of " + kind + " of " + device + " was closed");
    }
    Deque<Long> blocks = free.computeIfAbsent(size, key -> new ArrayDeque<>());
    long address = blocks.isEmpty() ? allocate(size) : blocks.pop();
    taken++;
    return address;
  }

  private long allocate(long size) {
    if (size > budgetBytes - reservedBytes) {
      throw new IllegalStateException(
          Bytes.text(size)
              + " more of "
              + kind
              + " of "
              + device
              + " exceed the budget of "
              + Bytes.text(budgetBytes)
              + ", of which "
              + Bytes.text(reservedBytes)
              + " are allocated");
    }
    device.use();
    long[] address = new long[1];
    CudaLibrary.check(
        kind == Kind.DEVICE
            ? CudaFunctions.cuMemAlloc_v2(address, size)
            : CudaFunctions.cuMemHostAlloc(address, size, PORTABLE),
        "allocating " + Bytes.text(size) + " of " + kind + " of " + device);
    reservedBytes += size;
    return address[0];
  }

  /** Also after the close, of a block that was in use then. */
  synchronized void giveBack(long address, long size) {
    taken--;
    if (closed) {
      release(address);
    } else {
      free.get(size).push(address);
    }
  }

  private void release(long address) {
    device.use();
    int result =
        kind == Kind.DEVICE
            ? CudaFunctions.cuMemFree_v2(address)
            : CudaFunctions.cuMemFreeHost(address);
    if (result != CudaLibrary.SUCCESS) {
      LOG.warn("{}: freeing {} gave {}", device, kind, result);
    }
  }

  /** Bytes that are allocated, taken or not. */
  public synchronized long reservedBytes() {
    return reservedBytes;
  }

  public Kind kind() {
    return kind;
  }

  /** Frees what is not taken; the rest is freed when it is given back. */
  @Override
  public void close() {
    List<Long> unused = new ArrayList<>();
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      free.values().forEach(unused::addAll);
      if (taken > 0) {
        LOG.warn("{}: {} blocks of {} are still taken at the close", device, taken, kind);
      }
    }
    unused.forEach(this::release);
  }
}
