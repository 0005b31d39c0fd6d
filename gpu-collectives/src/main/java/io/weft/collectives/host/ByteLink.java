package io.weft.collectives.host;

/**
 * A byte stream to one peer and one from it. No method blocks.
 *
 * <p>One thread at a time.
 */
interface ByteLink {
  /**
   * Appends as many bytes as there is room for; the peer may not see them before {@link #push}.
   *
   * @return the number of bytes appended, possibly 0
   */
  int put(long address, long bytes);

  /**
   * Sends appended bytes towards the peer.
   *
   * @return whether all are on their way, so that this rank need not call again
   */
  boolean push();

  /**
   * Takes bytes that have arrived.
   *
   * @return the number of bytes taken, possibly 0
   */
  int take(long address, long bytes);

  /** Whether bytes go through a network, which may corrupt them, so that they need checksums. */
  default boolean leavesHost() {
    return false;
  }

  /** The kinds of messages. Each kind has its own links, so neither delays the other. */
  enum Traffic {
    /** The sends and receives of users. */
    PAIRS(0),
    /** The internal messages of collectives. */
    COLLECTIVES(1);

    static final int COUNT = 2;

    private final int number;

    Traffic(int number) {
      this.number = number;
    }

    int number() {
      return number;
    }

    int index(int ranks, int peer) {
      return number * ranks + peer;
    }
  }
}
