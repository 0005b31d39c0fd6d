package io.weft.spark.shuffle;

import io.weft.exchange.ExecutorExchange;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;

/**
 * A {@code ShuffleDependency} that brings its own writer and reader over Weft's exchange. {@link
 * WeftShuffleManager} asks it instead of choosing a route.
 */
public interface ExchangeDependency {
  /**
   * Creates the writer of one map task. The writer publishes under (shuffle id, {@code mapId}) and
   * frees everything if it is stopped without success.
   */
  <K, V> ShuffleWriter<K, V> newWriter(
      long mapId,
      TaskContext context,
      ShuffleWriteMetricsReporter metrics,
      ExecutorExchange exchange);

  /**
   * Creates the reader of one reduce task.
   *
   * @param blocks what to read; also names the failure to throw where a block cannot be read
   */
  <K, C> ShuffleReader<K, C> newReader(
      ShuffleBlocks blocks,
      TaskContext context,
      ShuffleReadMetricsReporter metrics,
      ExecutorExchange exchange);
}
