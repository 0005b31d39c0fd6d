package io.weft.collectives.host;

/**
 * A stream of bytes to one peer and one from it. Nothing here blocks.
 *
 * <p>One thread at a time.
 */
interface Link {
  /**
   * Appends as many bytes as there is room for; the peer may not see them before {@link #push}.
   *
   * @return how many, possibly 0
   */
  int put(long address, long bytes);

  /**
   * Moves what was put towards the peer.
   *
   * @return whether all of it is on its way and this rank may forget it
   */
  boolean push();

  /**
   * Takes bytes that have come.
   *
   * @return how many, possibly 0
   */
  int take(long address, long bytes);

  /** Whether bytes go through a network, which may damage them, and so need sums. */
  default boolean leavesHost() {
    return false;
  }
}
