package io.weft.catalog;

import java.io.IOException;

/**
 * Keeps one executor's blocks of one shuffle readable. While it is open, no block found through it
 * is freed or unmapped. Several threads may look up outputs. After closing, no block may be used.
 */
public interface ShuffleHold extends AutoCloseable {
  /**
   * Finds a map output.
   *
   * @throws IOException if there is no output with this key, or its index or memory cannot be read;
   *     the message tells which
   */
  LocatedOutput output(BlockKey key) throws IOException;

  /** Releases the blocks. Can be repeated. */
  @Override
  void close();
}
