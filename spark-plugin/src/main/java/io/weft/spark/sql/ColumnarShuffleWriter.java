package io.weft.spark.sql;

import io.weft.catalog.BlockKey;
import io.weft.catalog.MapOutputWriter;
import io.weft.exchange.ExecutorExchange;
import io.weft.spark.columns.BatchPartitioner;
import io.weft.spark.columns.BatchScatter;
import io.weft.spark.config.Decommission;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.shuffle.MapStatuses;
import java.io.IOException;
import java.util.Arrays;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.util.TaskCompletionListener;
import scala.Option;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Scatters the batches or rows of one map task over its reduce partitions, as columns in the arena.
 * For one task thread; whatever way the task ends, what was not published is freed.
 *
 * @param <K> unused for batches, the partition of a row
 * @param <V> batches or rows, as the dependency says
 */
public final class ColumnarShuffleWriter<K, V> extends ShuffleWriter<K, V> {
  private static final long NO_CHECKSUM = 0;

  private final ColumnarShuffleDependency dependency;
  private final long mapId;
  private final TaskContext context;
  private final ShuffleWriteMetricsReporter metrics;
  private final MapOutputWriter output;
  private final BatchScatter scatter;
  private long rowBytes;
  private long writeNanos;
  private boolean stopped;

  /** Opens the map output of one task attempt. */
  public ColumnarShuffleWriter(
      ColumnarShuffleDependency dependency,
      long mapId,
      TaskContext context,
      ShuffleWriteMetricsReporter metrics,
      ExecutorExchange exchange) {
    this.dependency = dependency;
    this.mapId = mapId;
    this.context = context;
    this.metrics = metrics;
    int partitions = dependency.numPartitions();
    SparkConf conf = SparkEnv.get().conf();
    this.output = exchange.newMapOutput(new BlockKey(dependency.shuffleId(), mapId), partitions);
    this.scatter =
        new BatchScatter(
            dependency.schema(),
            partitions,
            output,
            WeftSettings.BATCH_ROWS.get(conf),
            WeftSettings.BATCH_SIZE.get(conf));
    context.addTaskCompletionListener((TaskCompletionListener) ended -> close());
  }

  @Override
  public void write(Iterator<Product2<K, V>> records) throws IOException {
    if (dependency.partitionIds().isPresent()) {
      writeBatches(records, dependency.partitionIds().get().open());
    } else {
      writeRows(records);
    }
    long start = System.nanoTime();
    scatter.finish();
    // Nobody asks for empty blocks, but one that migrates spares its map task a second run.
    if (scatter.rows() > 0 || Decommission.migratesShuffles(SparkEnv.get().conf())) {
      output.publish();
    }
    writeNanos += System.nanoTime() - start;
    report();
  }

  private void writeBatches(Iterator<Product2<K, V>> records, BatchPartitioner partitioner)
      throws IOException {
    RowBytes sizes = new RowBytes(dependency.schema());
    int[] ids = new int[0];
    while (records.hasNext()) {
      ColumnarBatch batch = (ColumnarBatch) records.next()._2();
      context.killTaskIfInterrupted();
      long start = System.nanoTime();
      if (ids.length < batch.numRows()) {
        ids = new int[batch.numRows()];
      }
      partitioner.partitionIds(batch, ids);
      scatter.append(batch, ids);
      rowBytes += sizes.of(batch);
      writeNanos += System.nanoTime() - start;
    }
  }

  private void writeRows(Iterator<Product2<K, V>> records) throws IOException {
    while (records.hasNext()) {
      Product2<K, V> record = records.next();
      UnsafeRow row = (UnsafeRow) record._2();
      scatter.append(row, (Integer) record._1());
      rowBytes += row.getSizeInBytes();
    }
  }

  private void report() {
    metrics.incRecordsWritten(scatter.rows());
    metrics.incBytesWritten(Arrays.stream(output.partitionBytes()).sum());
    metrics.incWriteTime(writeNanos);
    dependency.exchangeMetrics().dataSize().add(rowBytes);
    dependency.exchangeMetrics().batchesWritten().add(scatter.batches());
  }

  @Override
  public Option<MapStatus> stop(boolean success) {
    if (stopped) {
      return Option.empty();
    }
    stopped = true;
    Option<MapStatus> status = success ? Option.apply(mapStatus()) : Option.empty();
    close();
    return status;
  }

  /** What was published stays; the rest is freed. */
  private void close() {
    scatter.close();
    output.close();
  }

  private MapStatus mapStatus() {
    BlockManagerId location = SparkEnv.get().blockManager().shuffleServerId();
    return MapStatuses.create(location, output.partitionBytes(), mapId, NO_CHECKSUM);
  }

  @Override
  public long[] getPartitionLengths() {
    return output.partitionBytes();
  }
}
