package io.weft.examples.trace;

import io.weft.transfers.DeviceId;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The transfers of a trace of which both ends were recorded and succeeded.
 *
 * @param moves in the order of their sends, for each pair of devices
 * @param leftOut ends of other transfers
 */
record TransferPattern(List<Move> moves, int leftOut) {
  private static final Pattern DEVICE = Pattern.compile("executor (.+)/device (\\d{1,9})");

  /** The time of one end, in nanoseconds since the start of the trace. */
  record Span(long start, long end) {}

  /**
   * An array that moves.
   *
   * @param bytes of the array, 1 or more
   * @param send at the source
   * @param receive at the destination
   */
  record Move(DeviceId source, DeviceId destination, long bytes, Span send, Span receive) {}

  /**
   * Sums up.
   *
   * @param hosts by executor id
   */
  TransferTotals totals(Map<String, String> hosts) {
    long sameHost = 0;
    long network = 0;
    long nanos = 0;
    long first = Long.MAX_VALUE;
    long last = Long.MIN_VALUE;
    for (Move move : moves) {
      if (hosts.get(move.source().executor()).equals(hosts.get(move.destination().executor()))) {
        sameHost += move.bytes();
      } else {
        network += move.bytes();
      }
      nanos += move.receive().end() - move.receive().start();
      first = Math.min(first, Math.min(move.send().start(), move.receive().start()));
      last = Math.max(last, Math.max(move.send().end(), move.receive().end()));
    }
    long wall = moves.isEmpty() ? 0 : last - first;
    return new TransferTotals(moves.size(), sameHost, network, nanos, wall);
  }

  /** Collects the ends of transfers. */
  static final class Builder {
    private final Map<Route, Map<Offer, Ends>> routes = new LinkedHashMap<>();
    private int leftOut;

    /** From one device to another. */
    private record Route(DeviceId source, DeviceId destination) {}

    /** What both ends agree on. */
    private record Offer(long key, long bytes) {}

    /** The ends of transfers with the same offer. */
    private record Ends(List<Span> sends, List<Span> receives) {
      private Ends() {
        this(new ArrayList<>(), new ArrayList<>());
      }
    }

    /** Takes an event. Returns whether its figures are possible. */
    boolean add(TraceEvent event) {
      if (!event.name().equals("Transfer")) {
        return true;
      }
      boolean sends = event.text("direction").equals("send");
      Matcher device = DEVICE.matcher(event.text("device"));
      Matcher peer = DEVICE.matcher(event.text("peer"));
      Offer offer = new Offer(event.number("key"), event.number("bytes"));
      if (!device.matches() || !peer.matches() || offer.bytes() < 1) {
        return false;
      }
      if (!event.text("failure").isEmpty()) {
        leftOut++;
        return true;
      }
      DeviceId here = id(device);
      DeviceId there = id(peer);
      Ends ends =
          routes
              .computeIfAbsent(
                  sends ? new Route(here, there) : new Route(there, here), route -> new HashMap<>())
              .computeIfAbsent(offer, unused -> new Ends());
      Span span = new Span(event.start(), event.start() + event.nanos());
      (sends ? ends.sends() : ends.receives()).add(span);
      return true;
    }

    private static DeviceId id(Matcher device) {
      return new DeviceId(device.group(1), Integer.parseInt(device.group(2)));
    }

    TransferPattern build() {
      List<Move> moves = new ArrayList<>();
      routes.forEach((route, offers) -> moves.addAll(moves(route, offers)));
      return new TransferPattern(List.copyOf(moves), leftOut);
    }

    /**
     * The moves of a route. The n-th send meets the n-th receive in the product, so the order of
     * the sends is also that of the receives. Threads that start at the same time may have recorded
     * them in another order.
     */
    private List<Move> moves(Route route, Map<Offer, Ends> offers) {
      List<Move> moves = new ArrayList<>();
      offers.forEach(
          (offer, ends) -> {
            ends.sends().sort(Comparator.comparingLong(Span::start));
            ends.receives().sort(Comparator.comparingLong(Span::start));
            dropLost(ends.sends(), ends.receives());
            dropLost(ends.receives(), ends.sends());
            int matched = Math.min(ends.sends().size(), ends.receives().size());
            leftOut += ends.sends().size() + ends.receives().size() - 2 * matched;
            for (int i = 0; i < matched; i++) {
              moves.add(
                  new Move(
                      route.source(),
                      route.destination(),
                      offer.bytes(),
                      ends.sends().get(i),
                      ends.receives().get(i)));
            }
          });
      List<Span> receives =
          moves.stream().map(Move::receive).sorted(Comparator.comparingLong(Span::start)).toList();
      moves.sort(Comparator.comparingLong(move -> move.send().start()));
      List<Move> inOrder = new ArrayList<>();
      for (int i = 0; i < moves.size(); i++) {
        Move move = moves.get(i);
        inOrder.add(
            new Move(
                move.source(), move.destination(), move.bytes(), move.send(), receives.get(i)));
      }
      return inOrder;
    }

    /**
     * Drops the first ends whose other ends are missing, because a recording loses its oldest
     * events. An end of a transfer does not end before the other one starts.
     */
    private void dropLost(List<Span> ends, List<Span> others) {
      while (ends.size() > others.size()
          && !others.isEmpty()
          && ends.get(0).end() < others.get(0).start()) {
        ends.remove(0);
        leftOut++;
      }
    }
  }
}
