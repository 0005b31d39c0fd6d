package io.weft.examples.jobs;

import java.io.Serializable;

/**
 * Sums over the executors of a side, each since its start. What Weft counts is 0 where it is not
 * on.
 *
 * @param executors that answered
 * @param cpuSeconds of the whole processes: tasks, network threads, compiler, garbage collector
 * @param ownBytes read in place by the executor that wrote them
 * @param sameHostBytes read in place by another executor on the host
 * @param networkBytes received over the network
 * @param spilledBytes written to segments on disk because shared memory was full
 * @param freshBytes of shared memory touched for the first time
 */
public record ExecutorTotals(
    int executors,
    double cpuSeconds,
    long ownBytes,
    long sameHostBytes,
    long networkBytes,
    long spilledBytes,
    long freshBytes)
    implements Serializable {
  /** Nothing yet. */
  public static final ExecutorTotals NONE = new ExecutorTotals(0, 0, 0, 0, 0, 0, 0);

  /** The sum of two. */
  public ExecutorTotals plus(ExecutorTotals other) {
    return new ExecutorTotals(
        executors + other.executors,
        cpuSeconds + other.cpuSeconds,
        ownBytes + other.ownBytes,
        sameHostBytes + other.sameHostBytes,
        networkBytes + other.networkBytes,
        spilledBytes + other.spilledBytes,
        freshBytes + other.freshBytes);
  }

  /** What came to these since an earlier look at the same executors. */
  public ExecutorTotals since(ExecutorTotals earlier) {
    return new ExecutorTotals(
        executors,
        cpuSeconds - earlier.cpuSeconds,
        ownBytes - earlier.ownBytes,
        sameHostBytes - earlier.sameHostBytes,
        networkBytes - earlier.networkBytes,
        spilledBytes - earlier.spilledBytes,
        freshBytes - earlier.freshBytes);
  }

  /** Everything read through Weft. */
  public long readBytes() {
    return ownBytes + sameHostBytes + networkBytes;
  }
}
