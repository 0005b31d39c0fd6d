package io.weft.spark.shuffle;

import io.weft.shuffle.fetch.FetchListener;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;

/**
 * Reports a chunk reader's work to Spark's task metrics. Blocks of other executors on this host
 * count as local, because they are not sent over the network.
 *
 * <p>For one task thread.
 */
public final class FetchMetrics implements FetchListener {
  private static final long NANOS_PER_MILLI = 1_000_000;

  private final ShuffleReadMetricsReporter reporter;
  private long unreportedNanos;

  /** Creates a listener for one task's metrics. */
  public FetchMetrics(ShuffleReadMetricsReporter reporter) {
    this.reporter = reporter;
  }

  @Override
  public void local(int blocks, long bytes) {
    reporter.incLocalBlocksFetched(blocks);
    reporter.incLocalBytesRead(bytes);
  }

  @Override
  public void sameHost(int blocks, long bytes) {
    local(blocks, bytes);
  }

  @Override
  public void remote(int blocks, long bytes) {
    reporter.incRemoteBlocksFetched(blocks);
    reporter.incRemoteBytesRead(bytes);
  }

  /** Spark counts whole milliseconds, so the remainder is carried over to the next call. */
  @Override
  public void waited(long nanos) {
    unreportedNanos += nanos;
    long millis = unreportedNanos / NANOS_PER_MILLI;
    if (millis > 0) {
      reporter.incFetchWaitTime(millis);
      unreportedNanos -= millis * NANOS_PER_MILLI;
    }
  }
}
