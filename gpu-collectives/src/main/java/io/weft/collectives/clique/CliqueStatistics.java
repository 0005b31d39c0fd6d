package io.weft.collectives.clique;

/**
 * The counters of the communicators of cliques at one moment.
 *
 * @param requests acquisitions that began
 * @param created communicators created
 * @param closed communicators closed by their users, because they were broken or idle
 * @param aborted communicators broken because a member's process failed
 * @param open communicators in use
 */
public record CliqueStatistics(long requests, long created, long closed, long aborted, int open) {}
