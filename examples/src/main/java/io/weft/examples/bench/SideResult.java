package io.weft.examples.bench;

import io.weft.examples.measure.Spread;

/**
 * What one side showed in one workload. A shuffle's time is the whole job's less the median of the
 * same job without the shuffle; of a query, which has no such job, it is the whole.
 *
 * @param side its short name
 * @param label what people call it
 * @param baseSeconds the job without the shuffle; null for a query
 * @param jobSeconds the whole job
 * @param shuffleSeconds the shuffle
 * @param shuffleCpuSeconds of the shuffle, on the threads of its tasks
 * @param processCpuSeconds of all threads of the executors in the whole job, the median
 * @param storedBytes what map tasks wrote, as stored
 * @param ownBytes of a run, read in place by the executor that wrote them
 * @param sameHostBytes of a run, read in place by another executor
 * @param networkBytes of a run, received over the network
 * @param spilledBytes of all runs, that went to disk for want of memory
 * @param firstFreshBytes shared memory touched for the first time before the runs that count
 * @param laterFreshBytes the same in the runs that count: 0 where memory is reused
 */
public record SideResult(
    String side,
    String label,
    Spread baseSeconds,
    Spread jobSeconds,
    Spread shuffleSeconds,
    Spread shuffleCpuSeconds,
    double processCpuSeconds,
    long storedBytes,
    long ownBytes,
    long sameHostBytes,
    long networkBytes,
    long spilledBytes,
    long firstFreshBytes,
    long laterFreshBytes) {}
