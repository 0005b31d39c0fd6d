package io.weft.spark.shuffle;

import io.weft.exchange.ExecutorExchange;
import io.weft.transfer.ChunkReader;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.util.TaskCompletionListener;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Reads the records of one reduce task in place.
 *
 * <p>For one task thread. Chunks stay readable until the task ends: its completion listener closes
 * the transfers and reports the read metrics to Spark.
 */
final class RecordsReader<K, C> implements ShuffleReader<K, C> {
  private final ShuffleBlocks blocks;
  private final RecordFormat<K, C> format;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final ExecutorExchange exchange;

  RecordsReader(
      ShuffleBlocks blocks,
      RecordFormat<K, C> format,
      TaskContext context,
      ShuffleReadMetricsReporter metrics,
      ExecutorExchange exchange) {
    this.blocks = blocks;
    this.format = format;
    this.context = context;
    this.metrics = metrics;
    this.exchange = exchange;
  }

  @Override
  public Iterator<Product2<K, C>> read() {
    ChunkReader chunks = exchange.read(blocks.requests(), new FetchMetrics(metrics));
    RecordsIterator<K, C> records = new RecordsIterator<>(chunks, blocks, format, context, metrics);
    context.addTaskCompletionListener(
        (TaskCompletionListener)
            task -> {
              records.report();
              task.taskMetrics().mergeShuffleReadMetrics();
              chunks.close();
            });
    return records;
  }
}
