package io.weft.spark.rapids;

import ai.rapids.cudf.MemoryBuffer;
import com.nvidia.spark.rapids.shuffle.BounceBuffer;
import io.weft.device.Deadline;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Bounce buffers of one size, cut from one piece of the GPU's memory that is allocated at once. A
 * buffer that was closed is lent again when nothing that moves data touches it any more.
 *
 * <p>Thread-safe. Owns the memory.
 */
final class BouncePool implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(BouncePool.class);

  private final String name;
  private final MemoryBuffer root;
  private final long bufferBytes;
  private final Duration patience;
  private final Runnable freed;

  /** Who holds each buffer: its borrower, and what moves data. Under the lock. */
  private final int[] holders;

  /**
   * Allocates the memory.
   *
   * @param name for the log
   * @param patience of {@link #close} with what is still used
   * @param freed run when a buffer can be lent again, without a lock
   */
  BouncePool(
      String name,
      BounceMemory memory,
      long bufferBytes,
      int buffers,
      Duration patience,
      Runnable freed) {
    if (bufferBytes < 1 || buffers < 1) {
      throw new IllegalArgumentException(
          "%d bounce buffers of %d bytes: set spark.rapids.shuffle.ucx.bounceBuffers.* to 1 or more"
              .formatted(buffers, bufferBytes));
    }
    this.name = name;
    this.bufferBytes = bufferBytes;
    this.patience = patience;
    this.freed = freed;
    this.holders = new int[buffers];
    this.root = memory.allocate(Math.multiplyExact(bufferBytes, buffers));
  }

  /** Of each. */
  long bufferBytes() {
    return bufferBytes;
  }

  /** How many hold so many bytes, at most as many as there are, and as wanted. */
  private int needed(long bytes, int most) {
    long count = (bytes + bufferBytes - 1) / bufferBytes;
    return (int) Math.min(Math.min(count, most), holders.length);
  }

  /**
   * Lends buffers; does not wait.
   *
   * @param bytes that are to pass
   * @param most buffers
   * @return as many as that takes, or none when there are not so many
   */
  synchronized List<BounceBuffer> tryTake(long bytes, int most) {
    int wanted = needed(bytes, most);
    List<Integer> free = new ArrayList<>();
    for (int i = 0; i < holders.length && free.size() < wanted; i++) {
      if (holders[i] == 0) {
        free.add(i);
      }
    }
    if (free.size() < wanted) {
      return List.of();
    }
    List<BounceBuffer> taken = new ArrayList<>();
    for (int index : free) {
      MemoryBuffer part = root.slice(index * bufferBytes, bufferBytes);
      holders[index] = 1;
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
      letGo(index);
    }
  }

  /**
   * Keeps the buffer around an address from being lent again.
   *
   * @return lets go of it, once; does nothing for memory that is not of this pool
   */
  synchronized Runnable hold(long address) {
    long offset = address - root.getAddress();
    if (offset < 0 || offset >= bufferBytes * holders.length) {
      return () -> {};
    }
    int index = (int) (offset / bufferBytes);
    holders[index]++;
    return () -> letGo(index);
  }

  private void letGo(int index) {
    boolean last;
    synchronized (this) {
      holders[index]--;
      last = holders[index] == 0;
      notifyAll();
    }
    if (last) {
      freed.run();
    }
  }

  private synchronized int held() {
    int held = 0;
    for (int count : holders) {
      held += count > 0 ? 1 : 0;
    }
    return held;
  }

  private synchronized boolean awaitRest() throws InterruptedException {
    Deadline deadline = Deadline.after(patience);
    while (held() > 0 && !deadline.expired()) {
      TimeUnit.NANOSECONDS.timedWait(this, Math.max(1, deadline.remainingNanos()));
    }
    return held() == 0;
  }

  /** Frees the memory. What is still used after a while keeps all of it until the process ends. */
  @Override
  public void close() {
    try {
      if (awaitRest()) {
        root.close();
        return;
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    LOG.warn(
        "{} of {} {} bounce buffers of {} bytes are still used; the memory of all stays allocated",
        held(),
        holders.length,
        name,
        bufferBytes);
  }
}
