package io.weft.collectives.replay;

/**
 * What a recording has done so far on this rank.
 *
 * @param replays replays that ran or were submitted
 * @param updates replays before which buffers of this rank were looked up anew
 * @param refusals replays that all ranks refused
 */
public record ReplayStatistics(long replays, long updates, long refusals) {}
