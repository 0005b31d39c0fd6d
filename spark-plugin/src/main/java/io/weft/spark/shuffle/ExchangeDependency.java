package io.weft.spark.shuffle;

import io.weft.shuffle.ExecutorExchange;
import io.weft.spark.shuffle.ShuffleRoutes.RouteTaken;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;

/**
 * A {@code ShuffleDependency} with its own writer and reader over Weft's exchange. {@link
 * WeftShuffleManager} uses them instead of choosing a route.
 */
public interface ExchangeDependency {
  /** Name of the accumulator of the batches that map tasks wrote, if they write batches. */
  String BATCHES_WRITTEN = "batches written";

  /** The route and its reason, for the UI. */
  RouteTaken route();

  /**
   * Creates the writer of one map task. The writer publishes under (shuffle id, {@code mapId}) and
   * frees its output if it is stopped without success.
   *
   * @param sizes estimates the block sizes that Spark is told
   */
  <K, V> ShuffleWriter<K, V> newWriter(
      long mapId,
      TaskContext context,
      ShuffleWriteMetricsReporter metrics,
      ExecutorExchange exchange,
      BlockSizes sizes);

  /**
   * Creates the reader of one reduce task.
   *
   * @param blocks the blocks to read; also creates the exception for a block that cannot be read
   */
  <K, C> ShuffleReader<K, C> newReader(
      ShuffleBlocks blocks,
      TaskContext context,
      ShuffleReadMetricsReporter metrics,
      ExecutorExchange exchange);
}
