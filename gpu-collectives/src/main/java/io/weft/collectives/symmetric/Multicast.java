package io.weft.collectives.symmetric;

import io.weft.collectives.buffer.TypedBuffer;

/**
 * Writes that reach all ranks of a window at once. The host copies to one rank after the other;
 * NVLink sends once and the switch copies. Either way a rank sees the bytes only behind an acquire:
 * write, then {@link #signal}, and the readers wait for the signal.
 *
 * <p>Thread-safe as far as the ranges do not overlap.
 */
public interface Multicast {
  /**
   * Writes the bytes at the same offset of every rank, this one included.
   *
   * @param source may be this rank's own part of the window
   * @throws IndexOutOfBoundsException when they do not all lie within the window
   */
  void write(TypedBuffer source, long offset);

  /** {@link Window#signal} to every rank, this one included, after everything written before. */
  void signal(int slot, int value);

  /** How it is done, for logs: "host fan-out" or "nvlink". */
  String mechanism();
}
