package io.weft.crosshost;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueLease;
import io.weft.collectives.clique.CliqueMember;
import io.weft.collectives.clique.CommunicatorCache;
import io.weft.crosshost.wire.TransferWire;
import java.io.IOException;

/**
 * How a clique gets its communicator and makes a wire of it.
 *
 * @param cache keeps the communicators
 * @param meetings where both ends meet for one
 * @param wires makes what transfers use
 */
record CliqueAccess(
    CommunicatorCache cache, CommunicatorCache.Meetings meetings, TransferWire.Factory wires) {
  /**
   * Meets the peer; waits for it.
   *
   * @throws TransferException when there is nowhere to meet
   */
  CliqueLease acquire(CliqueKey key, CliqueMember self) {
    try (Bootstrap meeting = meetings.open(key, key.rankOf(self))) {
      return cache.acquire(key, self, meeting);
    } catch (IOException e) {
      throw new TransferException(self + " cannot meet the other end of " + key + ": " + e, e);
    }
  }
}
