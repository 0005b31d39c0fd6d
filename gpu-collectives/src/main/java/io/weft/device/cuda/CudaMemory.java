package io.weft.device.cuda;

import io.weft.device.Event;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A piece of device or pinned memory out of a pool. It goes back when it has been closed and the
 * events of all its uses have ended. Thread-safe.
 */
public final class CudaMemory implements AutoCloseable {
  private final CudaMemoryPool pool;
  private final PoolSegment segment;
  private final long offset;
  private final long bytes;

  /** The holder's own and one for every event. */
  private int uses = 1;

  private final AtomicBoolean closed = new AtomicBoolean();

  CudaMemory(CudaMemoryPool pool, PoolSegment segment, long offset, long bytes) {
    this.pool = pool;
    this.segment = segment;
    this.offset = offset;
    this.bytes = bytes;
  }

  /**
   * Where it lies.
   *
   * @throws IllegalStateException when it was closed
   */
  public long address() {
    if (closed.get()) {
      throw new IllegalStateException("the " + pool.source().what() + " was closed");
    }
    return segment.address() + offset;
  }

  /** The device it is of, or for. */
  public CudaDevice device() {
    return pool.device();
  }

  /** Which memory. */
  public CudaMemorySource source() {
    return pool.source();
  }

  /** As many as were asked for. */
  public long bytes() {
    return bytes;
  }

  /**
   * Keeps the memory until the event has ended, also when it is closed before.
   *
   * @throws IllegalStateException when it was given back already
   */
  public void usedUntil(Event event) {
    synchronized (this) {
      if (uses == 0) {
        throw new IllegalStateException(event.what() + " comes after the memory was given back");
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
