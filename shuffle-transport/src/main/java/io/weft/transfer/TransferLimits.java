package io.weft.transfer;

import io.weft.wire.Compression;
import java.time.Duration;

/**
 * The limits and options of a reader's requests.
 *
 * @param requestBytes about the bytes of one request
 * @param maxBytesInFlight limit of a reader for bytes that are requested and not yet used
 * @param maxPeerBytesInFlight the same limit for one peer
 * @param maxExecutorBytesInFlight the same limit for all readers; a reader without an outstanding
 *     request may exceed it by one request
 * @param checksums whether to request checksums
 * @param compression codec that peers may use
 * @param timeout a request without progress for this time fails
 */
public record TransferLimits(
    long requestBytes,
    long maxBytesInFlight,
    long maxPeerBytesInFlight,
    long maxExecutorBytesInFlight,
    boolean checksums,
    Compression compression,
    Duration timeout) {}
