package io.weft.shuffle.store;

import java.io.IOException;
import java.util.Arrays;
import java.util.SortedMap;

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

  /**
   * A map output that can be read in place: its index and the addresses of its chunks in this
   * process. Valid while its {@link ShuffleHold} is open. Immutable.
   */
  public static final class LocatedOutput {
    private final MapOutput index;

    /** The segments of the chunks, sorted. Few outputs have chunks in more than a few. */
    private final int[] segments;

    /** The addresses of the segments. */
    private final long[] addresses;

    /**
     * Creates the output.
     *
     * @param addresses the address of each segment that has a chunk, by segment
     */
    LocatedOutput(MapOutput index, SortedMap<Integer, Long> addresses) {
      this.index = index;
      this.segments = addresses.keySet().stream().mapToInt(Integer::intValue).toArray();
      this.addresses = addresses.values().stream().mapToLong(Long::longValue).toArray();
    }

    /** The index of the output. */
    public MapOutput index() {
      return index;
    }

    /** The address of a chunk, a multiple of 64. */
    public long address(int chunk) {
      int segment = Arrays.binarySearch(segments, index.segment(chunk));
      return addresses[segment] + index.offset(chunk);
    }
  }
}
