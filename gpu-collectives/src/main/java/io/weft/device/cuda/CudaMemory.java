package io.weft.device.cuda;

import io.weft.device.Event;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A piece of device or pinned memory of a pool. It returns to the pool when it is closed and the
 * events of all its uses have ended. Thread-safe.
 */
public final class CudaMemory implements AutoCloseable {
  private final CudaMemoryPool pool;
  private final PoolSegment segment;
  private final long offset;
  private final long bytes;

  /** One use for the holder and one for every event. */
  private int uses = 1;

  private final AtomicBoolean closed = new AtomicBoolean();

  CudaMemory(CudaMemoryPool pool, PoolSegment segment, long offset, long bytes) {
    this.pool = pool;
    this.segment = segment;
    this.offset = offset;
    this.bytes = bytes;
  }

  /**
   * The address of the first byte.
   *
   * @throws IllegalStateException when it was closed
   */
  public long address() {
    if (closed.get()) {
      throw new IllegalStateException("the " + pool.source().what() + " was closed");
    }
    return segment.address() + offset;
  }

  /** The device of the memory, or for pinned memory the device that copies it. */
  public CudaDevice device() {
    return pool.device();
  }

  /** The kind of memory. */
  public CudaMemorySource source() {
    return pool.source();
  }

  /** The requested length in bytes. */
  public long bytes() {
    return bytes;
  }

  /**
   * Keeps the memory until the event has ended, also after it is closed.
   *
   * @throws IllegalStateException when it was already returned to the pool
   */
  public void usedUntil(Event event) {
    synchronized (this) {
      if (uses == 0) {
        throw new IllegalStateException(
            event.what() + " comes after the memory was returned to its pool");
      }
      uses++;
    }
    event.whenReleased(this::endUse);
  }

  private void endUse() {
    boolean last;
    synchronized (this) {
      last = --uses == 0;
    }
    if (last) {
      pool.giveBack(segment, offset, bytes);
    }
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      endUse();
    }
  }
}
