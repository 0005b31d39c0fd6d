package io.weft.collectives.symmetric;

import io.weft.device.Event;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A loan of cached memory. Closing it returns the handle. The memory itself stays until every event
 * of {@link #usedUntil} has ended, even if the handle, the cache or the arena is closed earlier.
 *
 * <p>Thread-safe.
 */
final class CollectiveMemory implements AutoCloseable {
  private final CollectiveMemoryCache.Entry entry;
  private final boolean reused;
  private final AtomicBoolean closed = new AtomicBoolean();

  CollectiveMemory(CollectiveMemoryCache.Entry entry, boolean reused) {
    this.entry = entry;
    this.reused = reused;
  }

  /** The memory. It has at least the requested size, and the contents that earlier uses left. */
  public Window window() {
    return entry.window();
  }

  /** Whether this memory was cached; the same answer on all ranks. */
  public boolean isReused() {
    return reused;
  }

  /**
   * Uses by earlier borrowers that still run on this rank. Work of this borrower on another lane
   * must wait for them.
   */
  public Event[] earlierUses() {
    return entry.pendingUses();
  }

  /** Keeps the memory until the event has ended, even if everything is closed earlier. */
  public void usedUntil(Event event) {
    entry.usedUntil(event);
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      entry.giveBack();
    }
  }
}
