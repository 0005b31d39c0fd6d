package io.weft.transfer;

import io.weft.wire.Compression;
import java.time.Duration;

/**
 * How much a reader asks for at a time, and how long it waits.
 *
 * @param requestBytes asked of a peer at a time
 * @param maxBytesInFlight held at most by a reader for answers that are under way or not used up
 * @param maxPeerBytesInFlight of these, for answers of one peer
 * @param maxExecutorBytesInFlight of all readers together; what a reader without anything under way
 *     asks for comes on top
 * @param checksums whether peers are asked for checksums
 * @param compression how peers may pack
 * @param timeout a request that makes no progress for so long fails
 */
public record TransferLimits(
    long requestBytes,
    long maxBytesInFlight,
    long maxPeerBytesInFlight,
    long maxExecutorBytesInFlight,
    boolean checksums,
    Compression compression,
    Duration timeout) {}
