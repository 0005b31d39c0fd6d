package io.weft.tcp;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.netty.channel.Channel;
import java.util.HashMap;
import java.util.Map;

/**
 * Limits the bytes of answers that are open and not fully sent. Each peer also has its own limit,
 * so a peer that does not receive its data cannot block the others. Thread-safe.
 */
final class ServedBudget {
  private final long maxBytes;
  private final long maxBytesPerPeer;

  @GuardedBy("this")
  private final Map<Channel, Long> byPeer = new HashMap<>();

  @GuardedBy("this")
  private long bytes;

  /**
   * Starts empty.
   *
   * @param maxBytes for all peers
   * @param maxBytesPerPeer on one connection
   */
  ServedBudget(long maxBytes, long maxBytesPerPeer) {
    this.maxBytes = maxBytes;
    this.maxBytesPerPeer = maxBytesPerPeer;
  }

  /**
   * Reserves bytes for a peer if enough are left. A request above the limit is granted when no
   * other bytes are reserved.
   */
  synchronized boolean take(Channel peer, long wanted) {
    long known = byPeer.getOrDefault(peer, 0L);
    if (exceeds(known, wanted, maxBytesPerPeer) || exceeds(bytes, wanted, maxBytes)) {
      return false;
    }
    byPeer.put(peer, known + wanted);
    bytes += wanted;
    return true;
  }

  private static boolean exceeds(long taken, long wanted, long limit) {
    return taken > 0 && wanted > limit - taken;
  }

  /** Returns reserved bytes. */
  synchronized void give(Channel peer, long taken) {
    bytes -= taken;
    byPeer.computeIfPresent(peer, (same, known) -> known == taken ? null : known - taken);
  }

  /** The bytes that are reserved now. */
  synchronized long bytes() {
    return bytes;
  }
}
