package io.weft.exchange;

import io.weft.wire.Compression;
import java.util.Objects;

/**
 * How blocks are checked, packed and paced on their way.
 *
 * @param checksums whether blocks that come over the network, or lay on disk, are verified
 * @param compression how chunks are packed for the network
 * @param maxPeerBytesInFlight a reader holds at most so many bytes asked of one peer and not yet
 *     used; one request larger than that still comes, alone
 * @param maxServedBytes this executor has at most opened for peers and not sent to their end
 * @param maxServedBytesPerPeer of these, on one connection
 */
public record TrafficOptions(
    boolean checksums,
    Compression compression,
    long maxPeerBytesInFlight,
    long maxServedBytes,
    long maxServedBytesPerPeer) {
  public TrafficOptions {
    Objects.requireNonNull(compression, "compression");
    if (maxPeerBytesInFlight < 1 || maxServedBytes < 1 || maxServedBytesPerPeer < 1) {
      throw new IllegalArgumentException(
          "maxPeerBytesInFlight "
              + maxPeerBytesInFlight
              + ", maxServedBytes "
              + maxServedBytes
              + ", maxServedBytesPerPeer "
              + maxServedBytesPerPeer);
    }
  }
}
