package io.weft.device.cuda;

import io.weft.device.Event;
import java.util.concurrent.atomic.AtomicBoolean;

/** The use of a {@link TieredMemory} on the device. Thread-safe. */
public final class TieredLease implements AutoCloseable {
  private final TieredMemory memory;
  private final long address;
  private final AtomicBoolean closed = new AtomicBoolean();

  TieredLease(TieredMemory memory, long address) {
    this.memory = memory;
    this.address = address;
  }

  /**
   * Where it lies on the device, for as long as this lease.
   *
   * @throws IllegalStateException when it was closed
   */
  public long address() {
    if (closed.get()) {
      throw new IllegalStateException("the lease of " + memory.bytes() + " bytes was closed");
    }
    return address;
  }

  /** Keeps it there until the event has ended, also when the lease is closed before. */
  public void usedUntil(Event event) {
    if (closed.get()) {
      throw new IllegalStateException(event.what() + " comes after the lease was closed");
    }
    memory.retain();
    event.whenReleased(memory::release);
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      memory.release();
    }
  }
}
