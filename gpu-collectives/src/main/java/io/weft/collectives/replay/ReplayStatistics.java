package io.weft.collectives.replay;

/**
 * Counters of a recording on this rank.
 *
 * @param replays replays that ran or were submitted
 * @param updates replays that first looked up moved buffers of this rank again
 * @param refusals replays that all ranks refused
 */
public record ReplayStatistics(long replays, long updates, long refusals) {}
