package io.weft.catalog;

import java.io.IOException;

/**
 * Keeps one executor's blocks of one shuffle where they are: as long as it is open, no byte read
 * through it is freed or unmapped. Outputs may be looked up from several threads; closing ends
 * every use.
 */
public interface ShuffleHold extends AutoCloseable {
  /**
   * Finds a map output.
   *
   * @throws IOException if there is none under this key, or its index or memory cannot be read; the
   *     message says which
   */
  LocatedOutput output(BlockKey key) throws IOException;

  /** Lets go of the blocks. Can be repeated. */
  @Override
  void close();
}
