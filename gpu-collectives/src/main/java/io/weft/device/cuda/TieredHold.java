package io.weft.device.cuda;

import java.util.concurrent.atomic.AtomicBoolean;

/** Keeps a {@link TieredMemory} readable, while it may move between tiers. Thread-safe. */
public final class TieredHold implements AutoCloseable {
  private final DeviceTiers tiers;
  private final TieredMemory memory;
  private final AtomicBoolean closed = new AtomicBoolean();

  TieredHold(DeviceTiers tiers, TieredMemory memory) {
    this.tiers = tiers;
    this.memory = memory;
  }

  /**
   * Copies the memory of any tier to the host; the memory does not move.
   *
   * @throws IllegalStateException when this was closed, the arena is full, or the bytes on disk
   *     have changed
   * @throws CudaException when the device fails
   */
  public HostCopy copy() {
    if (closed.get()) {
      throw new IllegalStateException("the hold of " + memory.bytes() + " bytes was closed");
    }
    return tiers.copy(memory);
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      memory.endHold();
    }
  }
}
