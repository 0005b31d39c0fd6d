package io.weft.collectives.symmetric;

import io.weft.collectives.buffer.TypedBuffer;

/**
 * Writes that reach all ranks of a window at once. The host copies to one rank after the other.
 * NVLink sends once, and the switch copies. In both cases a rank sees the bytes only after an
 * acquire: write, then {@link #signal}; the readers wait for the signal.
 *
 * <p>Thread-safe for ranges that do not overlap.
 */
public interface Multicast {
  /**
   * Writes the bytes at the same offset of every rank, including this one.
   *
   * @param source may be this rank's own part of the window
   * @throws IndexOutOfBoundsException if the bytes are not all within the window
   */
  void write(TypedBuffer source, long offset);

  /**
   * Calls {@link Window#signal} for every rank, including this one, after everything written
   * before.
   */
  void signal(int slot, int value);

  /** The mechanism, for logs: "host fan-out" or "nvlink". */
  String mechanism();
}
