package io.weft.examples.trace;

/**
 * What a trace says of the transfers of arrays that a replay repeats.
 *
 * @param transfers their number
 * @param sameHost bytes between executors of one host
 * @param network bytes between hosts
 * @param transferNanos from the start of each receive to its end, summed up
 * @param wallNanos from the first start to the last end
 */
public record TransferTotals(
    int transfers, long sameHost, long network, long transferNanos, long wallNanos) {}
