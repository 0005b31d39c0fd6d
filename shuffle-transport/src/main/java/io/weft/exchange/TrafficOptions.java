package io.weft.exchange;

import io.weft.wire.Compression;
import java.util.Objects;

/**
 * The options for checksums, compression and flow control of blocks.
 *
 * @param checksums whether blocks from the network and from disk are verified
 * @param compression codec for chunks on the network
 * @param maxPeerBytesInFlight limit of a reader for bytes requested from one peer and not yet used;
 *     a larger request is sent alone
 * @param maxServedBytes limit for the bytes of answers that are open and not fully sent
 * @param maxServedBytesPerPeer the same limit for one connection
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
