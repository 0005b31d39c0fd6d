package io.weft.collectives.buffer;

import io.weft.device.Event;

/** Whoever keeps the memory under a {@link TypedBuffer} alive. Implementations are thread-safe. */
public interface BufferOwner {
  /**
   * Where the memory is now. A recording compares this with where it was when it was recorded.
   *
   * @throws IllegalStateException when the memory has been freed
   */
  long address();

  /** Bytes from {@link #address()} on. */
  long bytes();

  /**
   * Keeps the memory until an event has ended. An owner whose memory nobody can free while a buffer
   * is reachable has nothing to do.
   */
  default void usedUntil(Event event) {}
}
