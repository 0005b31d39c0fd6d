package io.weft.examples.trace;

import java.util.Map;
import java.util.TreeMap;

/**
 * What a trace says of one shuffle.
 *
 * @param shuffle its id
 * @param written bytes of all map outputs
 * @param own bytes read from the memory of the reading executor
 * @param sameHost bytes read in place from other executors
 * @param network bytes read over the network
 * @param readNanos time in which readers got blocks, summed over readers
 * @param waitNanos the part of it in which they waited for the network
 * @param wallNanos from the first read to the end of the last
 */
public record ShuffleTotals(
    int shuffle,
    long written,
    long own,
    long sameHost,
    long network,
    long readNanos,
    long waitNanos,
    long wallNanos) {

  /** Sums up events. */
  static final class Sums {
    private final Map<Integer, Sum> shuffles = new TreeMap<>();

    /** The sums of one shuffle. */
    private static final class Sum {
      private long written;
      private long own;
      private long sameHost;
      private long network;
      private long readNanos;
      private long waitNanos;
      private long firstRead = Long.MAX_VALUE;
      private long lastRead = Long.MIN_VALUE;

      private void read(TraceEvent event) {
        long bytes = event.number("bytes");
        switch (event.text("path")) {
          case "own" -> own += bytes;
          case "shm" -> sameHost += bytes;
          default -> network += bytes;
        }
        readNanos += event.nanos();
        firstRead = Math.min(firstRead, event.start());
        lastRead = Math.max(lastRead, event.start() + event.nanos());
      }
    }

    void add(TraceEvent event) {
      switch (event.name()) {
        case "Write" -> of(event).written += event.number("bytes");
        case "Read" -> of(event).read(event);
        case "Wait" -> of(event).waitNanos += event.nanos();
        default -> {}
      }
    }

    private Sum of(TraceEvent event) {
      return shuffles.computeIfAbsent((int) event.number("shuffleId"), id -> new Sum());
    }

    /** The totals by shuffle. */
    Map<Integer, ShuffleTotals> totals() {
      Map<Integer, ShuffleTotals> totals = new TreeMap<>();
      shuffles.forEach(
          (id, sum) ->
              totals.put(
                  id,
                  new ShuffleTotals(
                      id,
                      sum.written,
                      sum.own,
                      sum.sameHost,
                      sum.network,
                      sum.readNanos,
                      sum.waitNanos,
                      Math.max(0, sum.lastRead - Math.min(sum.firstRead, sum.lastRead)))));
      return totals;
    }
  }
}
