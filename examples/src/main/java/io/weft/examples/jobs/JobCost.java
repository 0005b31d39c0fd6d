package io.weft.examples.jobs;

import java.io.Serializable;

/**
 * What a job cost.
 *
 * @param seconds as the driver saw it, from the call to the result
 * @param cpuSeconds of all tasks of the job, on the threads that ran them
 * @param gcSeconds that tasks spent waiting for the garbage collector
 * @param shuffleBytes written by map tasks, as stored
 * @param remoteBytes that reduce tasks fetched over the network, as Spark counts it
 * @param spilledBytes that tasks wrote to disk for want of memory
 */
public record JobCost(
    double seconds,
    double cpuSeconds,
    double gcSeconds,
    long shuffleBytes,
    long remoteBytes,
    long spilledBytes)
    implements Serializable {}
