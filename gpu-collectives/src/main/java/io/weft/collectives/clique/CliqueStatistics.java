package io.weft.collectives.clique;

/**
 * The counters of a communicator cache at one moment.
 *
 * @param requests acquisitions that began
 * @param reused acquisitions that reused an existing communicator on all ranks
 * @param created communicators created
 * @param discarded created communicators that lost a race and were closed at once or after one
 *     lease
 * @param evicted communicators evicted, by agreement or because another rank no longer had one
 * @param aborted communicators broken because a member's process failed
 * @param refused acquisitions refused because a member's process had failed
 * @param open communicators in the cache
 */
public record CliqueStatistics(
    long requests,
    long reused,
    long created,
    long discarded,
    long evicted,
    long aborted,
    long refused,
    int open) {}
