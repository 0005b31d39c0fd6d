package io.weft.examples.bench.transfer;

/**
 * What one run took.
 *
 * @param seconds by the clock
 * @param cpuSeconds of all processes of the side, all threads
 */
record Cost(double seconds, double cpuSeconds) {}
