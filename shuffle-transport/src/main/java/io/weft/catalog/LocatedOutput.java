package io.weft.catalog;

/**
 * A map output that can be read in place: its index and the addresses of its chunks in this
 * process. Valid while its {@link ShuffleHold} is open. Immutable.
 */
public final class LocatedOutput {
  private final MapOutput index;
  private final long[] address;

  LocatedOutput(MapOutput index, long[] address) {
    this.index = index;
    this.address = address;
  }

  /** The index of the output. */
  public MapOutput index() {
    return index;
  }

  /** The address of a chunk, a multiple of 64. */
  public long address(int chunk) {
    return address[chunk];
  }
}
