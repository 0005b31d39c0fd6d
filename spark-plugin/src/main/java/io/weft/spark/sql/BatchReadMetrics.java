package io.weft.spark.sql;

import io.weft.spark.shuffle.FetchMetrics;
import io.weft.transfer.FetchListener;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;

/**
 * Counts the reads of a reduce task, for Spark's shuffle metrics and the node's own metrics. Not
 * thread-safe.
 */
final class BatchReadMetrics implements FetchListener {
  private final ShuffleReadMetricsReporter sparks;
  private final FetchMetrics fetches;
  private final ExchangeMetrics ours;

  BatchReadMetrics(ShuffleReadMetricsReporter sparks, ExchangeMetrics ours) {
    this.sparks = sparks;
    this.fetches = new FetchMetrics(sparks);
    this.ours = ours;
  }

  @Override
  public void local(int blocks, long bytes) {
    fetches.local(blocks, bytes);
    ours.ownBytes().add(bytes);
    ours.inPlaceBytes().add(bytes);
  }

  @Override
  public void sameHost(int blocks, long bytes) {
    fetches.sameHost(blocks, bytes);
    ours.sameHostBytes().add(bytes);
    ours.inPlaceBytes().add(bytes);
  }

  @Override
  public void remote(int blocks, long bytes) {
    fetches.remote(blocks, bytes);
  }

  @Override
  public void waited(long nanos) {
    fetches.waited(nanos);
  }

  /** Counts a batch passed to the parent node. */
  void batch(int rows) {
    sparks.incRecordsRead(rows);
    ours.batchesRead().add(1);
  }

  /** Counts a batch on the GPU passed to the parent node. */
  void deviceBatch(int rows) {
    batch(rows);
    ours.readOnDevice();
  }
}
