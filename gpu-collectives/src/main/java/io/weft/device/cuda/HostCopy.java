package io.weft.device.cuda;

import io.weft.memory.Extent;
import io.weft.memory.Memory;
import io.weft.memory.SharedArena;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicBoolean;

/** A copy of device memory in the arena, which stays until it is closed. */
public final class HostCopy implements AutoCloseable {
  private final SharedArena arena;
  private final Extent extent;
  private final int bytes;
  private final AtomicBoolean closed = new AtomicBoolean();

  HostCopy(SharedArena arena, Extent extent, long bytes) {
    this.arena = arena;
    this.extent = extent;
    this.bytes = Math.toIntExact(bytes);
  }

  /** The bytes of the copy, which must not be used after the close. */
  public ByteBuffer view() {
    if (closed.get()) {
      throw new IllegalStateException("the copy of " + bytes + " bytes was closed");
    }
    return Memory.view(this, extent.address(), bytes);
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      arena.free(extent);
    }
  }
}
