package io.weft.tcp;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.netty.channel.Channel;
import java.util.HashMap;
import java.util.Map;

/**
 * Bounds the bytes that are kept for peers: of answers that were opened and not sent to their end.
 * A peer that does not take what it asked for runs into its own bound and leaves the others theirs.
 * Thread-safe.
 */
final class ServedBudget {
  private final long mostBytes;
  private final long mostBytesPerPeer;

  @GuardedBy("this")
  private final Map<Channel, Long> byPeer = new HashMap<>();

  @GuardedBy("this")
  private long bytes;

  /**
   * Starts empty.
   *
   * @param mostBytes for all peers
   * @param mostBytesPerPeer on one connection
   */
  ServedBudget(long mostBytes, long mostBytesPerPeer) {
    this.mostBytes = mostBytes;
    this.mostBytesPerPeer = mostBytesPerPeer;
  }

  /** Takes bytes for a peer if there are any left. More than the bound is granted alone. */
  synchronized boolean take(Channel peer, long wanted) {
    long known = byPeer.getOrDefault(peer, 0L);
    if (exceeds(known, wanted, mostBytesPerPeer) || exceeds(bytes, wanted, mostBytes)) {
      return false;
    }
    byPeer.put(peer, known + wanted);
    bytes += wanted;
    return true;
  }

  private static boolean exceeds(long taken, long wanted, long most) {
    return taken > 0 && wanted > most - taken;
  }

  /** Gives back what was taken. */
  synchronized void give(Channel peer, long taken) {
    bytes -= taken;
    byPeer.computeIfPresent(peer, (same, known) -> known == taken ? null : known - taken);
  }

  /** Bytes taken now. */
  synchronized long bytes() {
    return bytes;
  }
}
