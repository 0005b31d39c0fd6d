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
   * The address on the device, valid for this lease.
   *
   * @throws IllegalStateException when it was closed
   */
  public long address() {
    if (closed.get()) {
      throw new IllegalStateException("the lease of " + memory.bytes() + " bytes was closed");
    }
    return address;
  }

  /** Keeps the memory on the device until the event has ended, also after the lease is closed. */
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
