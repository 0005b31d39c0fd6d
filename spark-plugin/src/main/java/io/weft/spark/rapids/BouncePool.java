package io.weft.spark.rapids;

import ai.rapids.cudf.CudaMemoryBuffer;
import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.MemoryBuffer;
import com.nvidia.spark.rapids.shuffle.BounceBuffer;
import io.weft.device.Deadline;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Bounce buffers of one size, cut from one block of GPU memory. A closed buffer is lent again when
 * no data movement uses it any more.
 *
 * <p>Thread-safe. Owns the memory.
 */
final class BouncePool implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(BouncePool.class);

  private final String name;
  private final MemoryBuffer root;
  private final long bufferBytes;
  private final Duration timeout;
  private final Runnable freed;

  /** The lent buffers, and the number of data movements that use each. Guarded by the monitor. */
  private final BitSet lent = new BitSet();

  private final int[] moves;
  private boolean closed;

  /**
   * Allocates the memory.
   *
   * @param name for the log
   * @param timeout how long {@link #close} waits for data movements
   * @param freed run when a buffer can be lent again, without a lock
   */
  BouncePool(
      String name,
      BounceMemory memory,
      long bufferBytes,
      int buffers,
      Duration timeout,
      Runnable freed) {
    if (bufferBytes < 1 || buffers < 1) {
      throw new IllegalArgumentException(
          "%d bounce buffers of %d bytes: set spark.rapids.shuffle.ucx.bounceBuffers.* to 1 or more"
              .formatted(buffers, bufferBytes));
    }
    this.name = name;
    this.bufferBytes = bufferBytes;
    this.timeout = timeout;
    this.freed = freed;
    this.moves = new int[buffers];
    this.root = memory.allocate(Math.multiplyExact(bufferBytes, buffers));
  }

  /** The size of each buffer. */
  long bufferBytes() {
    return bufferBytes;
  }

  /** The number of buffers for these bytes, limited by the pool and by {@code most}. */
  private int needed(long bytes, int most) {
    long count = (bytes + bufferBytes - 1) / bufferBytes;
    return (int) Math.min(Math.min(count, most), moves.length);
  }

  /**
   * Lends buffers; does not wait.
   *
   * @param bytes to move
   * @param most the limit of buffers
   * @return the needed buffers, or an empty list if not all of them are free
   */
  synchronized List<BounceBuffer> tryTake(long bytes, int most) {
    int wanted = needed(bytes, most);
    List<Integer> free = new ArrayList<>();
    for (int i = 0; i < moves.length && free.size() < wanted; i++) {
      if (moves[i] == 0 && !lent.get(i)) {
        free.add(i);
      }
    }
    if (free.size() < wanted) {
      return List.of();
    }
    List<BounceBuffer> taken = new ArrayList<>();
    for (int index : free) {
      MemoryBuffer part = root.slice(index * bufferBytes, bufferBytes);
      lent.set(index);
      taken.add(new Lent(index, part));
    }
    return taken;
  }

  private final class Lent extends BounceBuffer {
    private final int index;

    Lent(int index, MemoryBuffer part) {
      super(part);
      this.index = index;
    }

    @Override
    public void free(BounceBuffer buffer) {
      buffer.buffer().close();
      giveBack(index, true);
    }
  }

  /**
   * Holds the buffer at an address, so that it is not lent again.
   *
   * @return releases the hold, once; does nothing for memory outside of this pool
   */
  synchronized Runnable hold(long address) {
    long offset = address - root.getAddress();
    if (offset < 0 || offset >= bufferBytes * moves.length) {
      return () -> {};
    }
    int index = (int) (offset / bufferBytes);
    moves[index]++;
    return () -> giveBack(index, false);
  }

  private void giveBack(int index, boolean byBorrower) {
    boolean isFree;
    synchronized (this) {
      if (byBorrower) {
        lent.clear(index);
      } else {
        moves[index]--;
        notifyAll();
      }
      isFree = moves[index] == 0 && !lent.get(index);
    }
    if (isFree) {
      freed.run();
    }
  }

  private synchronized boolean isMoving() {
    return Arrays.stream(moves).anyMatch(count -> count > 0);
  }

  private synchronized boolean awaitIdle() throws InterruptedException {
    Deadline deadline = Deadline.after(timeout);
    while (isMoving() && !deadline.expired()) {
      TimeUnit.NANOSECONDS.timedWait(this, Math.max(1, deadline.remainingNanos()));
    }
    return !isMoving();
  }

  /**
   * Frees the memory once all lent buffers are closed. If a data movement does not end in time, the
   * memory stays allocated until the process ends.
   */
  @Override
  public void close() {
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
    }
    boolean idle = false;
    try {
      idle = awaitIdle();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (idle) {
      root.close();
    } else {
      LOG.warn("Data still moves through {} bounce buffers; their memory stays allocated", name);
    }
  }

  /** Allocates the memory of bounce buffers. */
  @FunctionalInterface
  interface BounceMemory {
    /** Allocates memory of this executor's GPU. The caller closes it. */
    MemoryBuffer allocate(long bytes);

    /**
     * cudf's memory: from its pool, so that it counts as spark-rapids' memory. Other GPUs cannot
     * reach memory of the driver's stream-ordered pool, so with that pool it is plain memory
     * outside of the pool.
     *
     * @param pool the value of spark-rapids' setting
     */
    static BounceMemory ofCudf(String pool) {
      return pool.equalsIgnoreCase("ASYNC")
          ? CudaMemoryBuffer::allocate
          : DeviceMemoryBuffer::allocate;
    }
  }
}
