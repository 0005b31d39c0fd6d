package io.weft.collectives.symmetric;

/**
 * A cache's counters at one moment.
 *
 * @param hits requests answered with memory that was there, on all ranks
 * @param misses requests for which memory was made
 * @param mismatches of the misses, those where some ranks still had the memory and others not
 * @param evictions entries dropped here, for whatever reason
 * @param entries memory found again if asked for now
 */
public record CacheStatistics(
    long hits, long misses, long mismatches, long evictions, int entries) {}
