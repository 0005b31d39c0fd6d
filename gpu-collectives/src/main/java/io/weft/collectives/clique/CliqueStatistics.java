package io.weft.collectives.clique;

/**
 * The counters of a communicator cache at one moment.
 *
 * @param requests acquisitions that began
 * @param reused acquisitions answered with a communicator that was there, on all ranks
 * @param created communicators made
 * @param discarded of these, those that lost a race and were closed at once or after one lease
 * @param evicted communicators given up, by agreement or because another rank had none any more
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
