package io.weft.transfer;

import java.time.Duration;

/**
 * How much a reader asks for at a time, and how long it waits.
 *
 * @param requestBytes asked of a peer at a time
 * @param maxBytesInFlight held at most by a reader for answers that are under way or not used up
 * @param timeout a request that makes no progress for so long fails
 */
public record TransferLimits(long requestBytes, long maxBytesInFlight, Duration timeout) {}
