package io.weft.spark.sql;

import io.weft.exchange.ExecutorExchange;
import io.weft.spark.shuffle.ShuffleBlocks;
import org.apache.spark.InterruptibleIterator;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.TaskCompletionListener;
import scala.Product2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * Reads the blocks of one reduce task whose map tasks wrote to GPUs, or to hosts without a GPU.
 * First it reads the blocks on GPUs, as batches on this executor's GPU if it has one, then the
 * other blocks. A batch is valid until the next one is requested. All memory is released when the
 * task ends. For one task thread.
 *
 * @param <K> unused
 * @param <C> batches
 */
final class DeviceShuffleReader<K, C> implements ShuffleReader<K, C> {
  private final ColumnarShuffleDependency dependency;
  private final ShuffleBlocks blocks;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final ExecutorExchange exchange;

  /** Creates a reader. Fetching starts with {@link #read()}. */
  DeviceShuffleReader(
      ColumnarShuffleDependency dependency,
      ShuffleBlocks blocks,
      TaskContext context,
      ShuffleReadMetricsReporter metrics,
      ExecutorExchange exchange) {
    this.dependency = dependency;
    this.blocks = blocks;
    this.context = context;
    this.metrics = metrics;
    this.exchange = exchange;
  }

  @Override
  @SuppressWarnings("unchecked")
  public Iterator<Product2<K, C>> read() {
    DeviceBlocks found = DeviceBlocks.of(blocks, context);
    BatchReadMetrics counted = new BatchReadMetrics(metrics, dependency.exchangeMetrics());
    DeviceBlockReader onDevices =
        new DeviceBlockReader(dependency.schema(), blocks, found.onDevices(), context, counted);
    context.addTaskCompletionListener(
        (TaskCompletionListener)
            ended -> {
              onDevices.close();
              ended.taskMetrics().mergeShuffleReadMetrics();
            });
    Iterator<Product2<K, C>> first =
        new InterruptibleIterator<>(
            context, (Iterator<Product2<K, C>>) (Object) new Records(onDevices));
    return found.onHosts().requests().isEmpty()
        ? first
        : first.concat(
            () ->
                new ColumnarShuffleReader<K, C>(
                        dependency, found.onHosts(), context, metrics, exchange)
                    .read());
  }

  /** The batches as shuffle records. */
  private static final class Records extends AbstractIterator<Product2<Object, ColumnarBatch>> {
    private final DeviceBlockReader batches;

    Records(DeviceBlockReader batches) {
      this.batches = batches;
    }

    @Override
    public boolean hasNext() {
      return batches.hasNext();
    }

    @Override
    public Product2<Object, ColumnarBatch> next() {
      return new scala.Tuple2<>(0, batches.next());
    }
  }
}
