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
 * Reads the packed rows of one reduce task in place.
 *
 * <p>For one task thread. Chunks stay readable until the task ends: its completion listener closes
 * the transfers and hands the read metrics over to Spark.
 */
final class RowsReader<K, C> implements ShuffleReader<K, C> {
  private final ShuffleBlocks blocks;
  private final int fields;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final ExecutorExchange exchange;

  RowsReader(
      ShuffleBlocks blocks,
      int fields,
      TaskContext context,
      ShuffleReadMetricsReporter metrics,
      ExecutorExchange exchange) {
    this.blocks = blocks;
    this.fields = fields;
    this.context = context;
    this.metrics = metrics;
    this.exchange = exchange;
  }

  @Override
  public Iterator<Product2<K, C>> read() {
    ChunkReader chunks = exchange.read(blocks.requests(), new FetchMetrics(metrics));
    RowsIterator<K, C> rows = new RowsIterator<>(chunks, blocks, fields, context, metrics);
    context.addTaskCompletionListener(
        (TaskCompletionListener)
            task -> {
              rows.report();
              task.taskMetrics().mergeShuffleReadMetrics();
              chunks.close();
            });
    return rows;
  }
}
