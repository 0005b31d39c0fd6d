package io.weft.collectives.symmetric;

import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/**
 * The message of a rank when all request a window.
 *
 * <pre> long bytes | int number of the window | int count | int each ended window
 * </pre>
 *
 * @param number how many windows this rank has requested before
 * @param ended windows whose last use on this rank has ended and whose bytes are not reused yet
 */
record WindowRequest(long bytes, int number, Set<Integer> ended) {
  private static final int HEAD_BYTES = 16;

  byte[] encode() {
    ByteBuffer out = ByteBuffer.allocate(HEAD_BYTES + 4 * ended.size());
    out.putLong(bytes).putInt(number).putInt(ended.size());
    ended.forEach(out::putInt);
    return out.array();
  }

  static WindowRequest decode(byte[] message) {
    ByteBuffer in = ByteBuffer.wrap(message);
    if (message.length < HEAD_BYTES
        || message.length != HEAD_BYTES + 4L * in.getInt(HEAD_BYTES - 4)) {
      throw new CollectiveException(
          Kind.MISMATCH,
          List.of(),
          "a rank's request for a window, of " + message.length + " bytes, is not readable");
    }
    long bytes = in.getLong();
    int number = in.getInt();
    Set<Integer> ended = new TreeSet<>();
    for (int left = in.getInt(); left > 0; left--) {
      ended.add(in.getInt());
    }
    return new WindowRequest(bytes, number, ended);
  }

  /** Checks that all ranks request the same window; names those that differ from rank 0. */
  static void requireSame(List<WindowRequest> all) {
    WindowRequest first = all.get(0);
    List<Integer> others = new ArrayList<>();
    for (int rank = 1; rank < all.size(); rank++) {
      if (!all.get(rank).asksLike(first)) {
        others.add(rank);
      }
    }
    if (!others.isEmpty()) {
      WindowRequest other = all.get(others.get(0));
      List<Integer> ranks = new ArrayList<>(List.of(0));
      ranks.addAll(others);
      throw new CollectiveException(
          Kind.MISMATCH,
          ranks,
          "rank 0 asks for symmetric "
              + first
              + " but "
              + CollectiveException.name(others)
              + " for "
              + other
              + "; all ranks must ask for the same windows in the same order");
    }
  }

  private boolean asksLike(WindowRequest other) {
    return bytes == other.bytes && number == other.number;
  }

  /** The windows that have ended on all ranks, in order. */
  static Set<Integer> endedEverywhere(List<WindowRequest> all) {
    Set<Integer> ended = new TreeSet<>(all.get(0).ended);
    all.forEach(request -> ended.retainAll(request.ended));
    return ended;
  }

  @Override
  public String toString() {
    return "window #" + number + " of " + bytes + " bytes";
  }
}
