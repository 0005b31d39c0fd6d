package io.weft.examples.bench.collectives;

/**
 * What one side took for so many operations.
 *
 * @param nanos of the slowest rank
 * @param cpuNanos of all ranks together, all threads
 * @param errors elements that were not as expected; 0 where nothing was compared
 * @param algorithm which the side says it used; empty if it does not
 */
record Timing(long nanos, long cpuNanos, long errors, String algorithm) {}
