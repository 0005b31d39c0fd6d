package io.weft.collectives;

import io.weft.device.Event;

/**
 * The owner of the memory under a {@link TypedBuffer}, which keeps it alive. Implementations are
 * thread-safe.
 */
public interface BufferOwner {
  /**
   * The current address of the memory. A recording compares it with the address at the time of
   * recording.
   *
   * @throws IllegalStateException when the memory has been freed
   */
  long address();

  /** The number of bytes from {@link #address()} on. */
  long bytes();

  /** Whether the host can access the memory; false for memory of a GPU. */
  default boolean isOnHost() {
    return true;
  }

  /**
   * Keeps the memory until an event has ended. An owner has nothing to do here when its memory
   * cannot be freed while a buffer is reachable.
   */
  default void usedUntil(Event event) {}
}
