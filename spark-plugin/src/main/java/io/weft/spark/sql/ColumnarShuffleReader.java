package io.weft.spark.sql;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchInterruptedException;
import io.weft.spark.columns.BatchReader;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.shuffle.ShuffleBlocks;
import io.weft.spark.shuffle.SneakyThrow;
import io.weft.spark.sql.ExchangeMetrics.BatchReadMetrics;
import java.io.UncheckedIOException;
import java.util.Iterator;
import java.util.function.Supplier;
import org.apache.spark.InterruptibleIterator;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.TaskCompletionListener;
import scala.Product2;
import scala.Tuple2;
import scala.collection.AbstractIterator;

/**
 * Reads the blocks of one partition as batches, in place for blocks of this host. A batch is valid
 * until the next one is requested. All memory is released after the last batch, or when the task
 * ends. Until then, the task's completion listener refers to nothing that grows with the blocks.
 * One thread at a time reads.
 *
 * @param <K> unused
 * @param <C> batches
 */
final class ColumnarShuffleReader<K, C> implements ShuffleReader<K, C> {
  private final ColumnarShuffleDependency dependency;
  private final ShuffleBlocks blocks;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final ExecutorExchange exchange;

  /** Creates a reader. Fetching starts with {@link #read()}. */
  public ColumnarShuffleReader(
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
  public scala.collection.Iterator<Product2<K, C>> read() {
    BatchReadMetrics listener = new BatchReadMetrics(metrics, dependency.exchangeMetrics());
    ChunkReader chunks = exchange.read(blocks.requests(), listener);
    int batchRows = WeftSettings.BATCH_ROWS.get(SparkEnv.get().conf());
    BatchReader batches = new BatchReader(dependency.schema(), chunks, batchRows);
    context.addTaskCompletionListener(
        (TaskCompletionListener)
            ended -> {
              chunks.close();
              ended.taskMetrics().mergeShuffleReadMetrics();
            });
    return new InterruptibleIterator<>(
        context,
        (scala.collection.Iterator<Product2<K, C>>) (Object) new Records(batches, listener));
  }

  /** The batches as shuffle records. Failures are thrown as Spark's exceptions. */
  private final class Records extends AbstractIterator<Product2<Object, ColumnarBatch>> {
    private final Iterator<ColumnarBatch> batches;
    private final BatchReadMetrics counted;

    Records(Iterator<ColumnarBatch> batches, BatchReadMetrics counted) {
      this.batches = batches;
      this.counted = counted;
    }

    @Override
    public boolean hasNext() {
      return inSparksWords(batches::hasNext);
    }

    @Override
    public Product2<Object, ColumnarBatch> next() {
      ColumnarBatch batch = inSparksWords(batches::next);
      counted.batch(batch.numRows());
      return new Tuple2<>(0, batch);
    }
  }

  private <T> T inSparksWords(Supplier<T> step) {
    try {
      return step.get();
    } catch (UncheckedIOException e) {
      throw e.getCause() instanceof BlockFetchException missing
          ? SneakyThrow.<RuntimeException>raise(blocks.failure(missing))
          : e;
    } catch (FetchInterruptedException e) {
      context.killTaskIfInterrupted(); // Throws Spark's exception with the reason why the task was
      // killed.
      throw e;
    }
  }
}
