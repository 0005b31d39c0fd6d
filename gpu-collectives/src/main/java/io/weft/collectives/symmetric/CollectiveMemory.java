package io.weft.collectives.symmetric;

import io.weft.device.Event;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A loan of cached memory. Closing it gives the handle back; the memory itself lives until every
 * event of {@link #usedUntil} has ended, whatever happens to the handle, the cache or the arena.
 *
 * <p>Thread-safe.
 */
public final class CollectiveMemory implements AutoCloseable {
  private final CollectiveMemoryCache.Entry entry;
  private final boolean reused;
  private final AtomicBoolean closed = new AtomicBoolean();

  CollectiveMemory(CollectiveMemoryCache.Entry entry, boolean reused) {
    this.entry = entry;
    this.reused = reused;
  }

  /** The memory; at least as many bytes as asked for, with the contents that earlier uses left. */
  public Window window() {
    return entry.window();
  }

  /** Whether this is memory that was there, the same answer on all ranks. */
  public boolean isReused() {
    return reused;
  }

  /**
   * Uses by earlier borrowers that still run on this rank: work of this one on another lane has to
   * come after them.
   */
  public Event[] earlierUses() {
    return entry.pendingUses();
  }

  /** Keeps the memory until the event has ended, also when everything is closed before. */
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
