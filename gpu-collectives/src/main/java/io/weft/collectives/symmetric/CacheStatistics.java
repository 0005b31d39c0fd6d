package io.weft.collectives.symmetric;

/**
 * Counters of a cache at one moment.
 *
 * @param hits requests answered with cached memory, on all ranks
 * @param misses requests for which new memory was allocated
 * @param mismatches misses where some ranks still had the memory and others did not
 * @param evictions entries dropped on this rank, for any reason
 * @param entries entries that a request would find now
 */
public record CacheStatistics(
    long hits, long misses, long mismatches, long evictions, int entries) {}
