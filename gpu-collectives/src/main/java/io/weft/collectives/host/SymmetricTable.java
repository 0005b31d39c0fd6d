package io.weft.collectives.host;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.TypedBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The memory of this rank that the other ranks of the host can reach, and the addresses of theirs
 * in this process. A descriptor locates a buffer in a form that all ranks understand: the number of
 * a region and the offset in it.
 *
 * <p>All ranks add and remove regions in the same order, between operations. Thread-safe.
 */
final class SymmetricTable {
  /** The descriptor of memory that only its owner reaches. */
  static final long NONE = -1;

  private static final int OFFSET_BITS = 44;
  private static final long OFFSET_MASK = (1L << OFFSET_BITS) - 1;

  /**
   * A range of memory that each rank has.
   *
   * @param number the same on all ranks
   * @param bases the address of each rank's range in this process, by index on the host
   */
  record Region(int number, long bytes, List<Long> bases) {}

  private final int me;
  private volatile Entry[] entries = new Entry[0];

  /** A region with its numbers in fields and arrays, for fast look-ups. */
  private static final class Entry {
    private final int number;
    private final long base;
    private final long bytes;
    private final long[] bases;

    private Entry(Region region, int me) {
      this.number = region.number();
      this.base = region.bases().get(me);
      this.bytes = region.bytes();
      this.bases = region.bases().stream().mapToLong(Long::longValue).toArray();
    }
  }

  /** Starts without regions. */
  SymmetricTable(int me) {
    this.me = me;
  }

  synchronized void add(Region region) {
    List<Entry> next = new ArrayList<>(List.of(entries));
    next.add(new Entry(region, me));
    entries = next.toArray(Entry[]::new);
  }

  synchronized void remove(int number) {
    List<Entry> next = new ArrayList<>(List.of(entries));
    next.removeIf(entry -> entry.number == number);
    entries = next.toArray(Entry[]::new);
  }

  /** The descriptor of a buffer, or NONE when it is not completely within one region. */
  long describe(TypedBuffer buffer) {
    long address = buffer.address();
    for (Entry entry : entries) {
      long offset = address - entry.base;
      if (offset >= 0 && offset <= entry.bytes - buffer.bytes()) {
        return (long) entry.number << OFFSET_BITS | offset;
      }
    }
    return NONE;
  }

  /** The address, in this process, of memory that a peer described. */
  long resolve(int peer, long descriptor) {
    int number = (int) (descriptor >>> OFFSET_BITS);
    for (Entry entry : entries) {
      if (entry.number == number) {
        return entry.bases[peer] + (descriptor & OFFSET_MASK);
      }
    }
    throw new CollectiveException(
        CollectiveException.Kind.MISMATCH,
        List.of(),
        "a rank uses a buffer of symmetric region #" + number + ", which is not open here");
  }

  /** Numbers the regions that users add to a communicator's table. Thread-safe. */
  static final class HostRegions {
    private final SymmetricTable table;
    private final List<Integer> ranks;
    private final AtomicInteger next = new AtomicInteger();

    /**
     * Starts without regions.
     *
     * @param me this rank
     * @param ranks the ranks of this host, ascending
     */
    HostRegions(int me, List<Integer> ranks) {
      this.table = new SymmetricTable(ranks.indexOf(me));
      this.ranks = List.copyOf(ranks);
    }

    SymmetricTable table() {
      return table;
    }

    /**
     * Adds a region.
     *
     * @param bases by rank of the communicator
     */
    int add(long bytes, List<Long> bases) {
      int number = next.getAndIncrement();
      table.add(new SymmetricTable.Region(number, bytes, ranks.stream().map(bases::get).toList()));
      return number;
    }

    void remove(int region) {
      table.remove(region);
    }
  }
}
