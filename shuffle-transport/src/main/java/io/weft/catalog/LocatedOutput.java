package io.weft.catalog;

/**
 * A map output whose chunks can be read in place: its index together with the addresses at which
 * this process sees the chunks. Valid as long as the {@link ShuffleHold} it came from is open.
 * Immutable.
 */
public final class LocatedOutput {
  private final MapOutput index;
  private final long[] address;

  LocatedOutput(MapOutput index, long[] address) {
    this.index = index;
    this.address = address;
  }

  /** What the output consists of. */
  public MapOutput index() {
    return index;
  }

  /** Where a chunk starts; a multiple of 64. */
  public long address(int chunk) {
    return address[chunk];
  }
}
