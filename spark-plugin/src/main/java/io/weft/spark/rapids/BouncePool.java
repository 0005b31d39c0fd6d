package io.weft.spark.rapids;

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

  /** Which are lent, and how many passages of data use each. Under the lock. */
  private final BitSet lent = new BitSet();

  private final int[] passages;
  private boolean closed;

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
    this.passages = new int[buffers];
    this.root = memory.allocate(Math.multiplyExact(bufferBytes, buffers));
  }

  /** Of each. */
  long bufferBytes() {
    return bufferBytes;
  }

  /** How many hold so many bytes, at most as many as there are, and as wanted. */
  private int needed(long bytes, int most) {
    long count = (bytes + bufferBytes - 1) / bufferBytes;
    return (int) Math.min(Math.min(count, most), passages.length);
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
    for (int i = 0; i < passages.length && free.size() < wanted; i++) {
      if (passages[i] == 0 && !lent.get(i)) {
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
   * Keeps the buffer around an address from being lent again.
   *
   * @return lets go of it, once; does nothing for memory that is not of this pool
   */
  synchronized Runnable hold(long address) {
    long offset = address - root.getAddress();
    if (offset < 0 || offset >= bufferBytes * passages.length) {
      return () -> {};
    }
    int index = (int) (offset / bufferBytes);
    passages[index]++;
    return () -> giveBack(index, false);
  }

  private void giveBack(int index, boolean byBorrower) {
    boolean isFree;
    synchronized (this) {
      if (byBorrower) {
        lent.clear(index);
      } else {
        passages[index]--;
        notifyAll();
      }
      isFree = passages[index] == 0 && !lent.get(index);
    }
    if (isFree) {
      freed.run();
    }
  }

  private synchronized boolean isMoving() {
    return Arrays.stream(passages).anyMatch(count -> count > 0);
  }

  private synchronized boolean awaitRest() throws InterruptedException {
    Deadline deadline = Deadline.after(patience);
    while (isMoving() && !deadline.expired()) {
      TimeUnit.NANOSECONDS.timedWait(this, Math.max(1, deadline.remainingNanos()));
    }
    return !isMoving();
  }

  /**
   * Frees the memory, as soon as all that is lent has been closed. What data still passes through
   * after a while keeps all of it until the process ends.
   */
  @Override
  public void close() {
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
    }
    boolean rests = false;
    try {
      rests = awaitRest();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (rests) {
      root.close();
    } else {
      LOG.warn("Data still passes through {} bounce buffers; their memory stays allocated", name);
    }
  }
}
