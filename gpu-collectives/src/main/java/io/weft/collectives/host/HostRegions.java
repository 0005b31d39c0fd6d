package io.weft.collectives.host;

import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** Numbers the regions that users add to a communicator's table. Thread-safe. */
final class HostRegions {
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
