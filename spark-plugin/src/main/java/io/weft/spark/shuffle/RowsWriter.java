package io.weft.spark.shuffle;

import io.weft.catalog.BlockKey;
import io.weft.catalog.MapOutputWriter;
import io.weft.exchange.ExecutorExchange;
import io.weft.spark.config.Decommission;
import java.io.IOException;
import org.apache.spark.Partitioner;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.util.TaskCompletionListener;
import scala.Option;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Writes the packed rows of one map task into the arena.
 *
 * <p>For one task thread. Whatever way the task ends, its completion listener closes the output;
 * unless it was published, that frees every chunk.
 */
final class RowsWriter<K, V> extends ShuffleWriter<K, V> {
  private final ShuffleDependency<?, ?, ?> dependency;
  private final BlockKey key;
  private final TaskContext context;
  private final ShuffleWriteMetricsReporter metrics;
  private final ChunkSizes sizes;
  private final MapOutputWriter output;
  private final RowChecksums checksums;
  private final int partitions;
  private long rowBytes;
  private long rows;
  private boolean stopped;

  RowsWriter(
      ShuffleDependency<?, ?, ?> dependency,
      BlockKey key,
      TaskContext context,
      ShuffleWriteMetricsReporter metrics,
      ExecutorExchange exchange,
      ChunkSizes sizes) {
    this.dependency = dependency;
    this.key = key;
    this.context = context;
    this.metrics = metrics;
    this.sizes = sizes;
    this.partitions = dependency.partitioner().numPartitions();
    this.checksums = RowChecksums.of(dependency);
    this.output = exchange.newMapOutput(key, partitions);
    context.addTaskCompletionListener((TaskCompletionListener) task -> output.close());
  }

  @Override
  public void write(Iterator<Product2<K, V>> records) throws IOException {
    if (!records.hasNext() && !Decommission.migratesShuffles(SparkEnv.get().conf())) {
      return; // Nobody asks for empty blocks, so there is nothing to publish.
    }
    RowScatter scatter =
        new RowScatter(
            output, context, partitions, sizes.last(key.shuffleId()), sizes.max(partitions));
    if (checksums == null) {
      scatterRows(records, scatter);
    } else {
      scatterCheckedRows(records, scatter);
    }
    scatter.finish();
    publish(scatter);
  }

  private void scatterRows(Iterator<Product2<K, V>> records, RowScatter scatter)
      throws IOException {
    Partitioner partitioner = dependency.partitioner();
    long bytes = 0;
    long count = 0;
    while (records.hasNext()) {
      Product2<K, V> entry = records.next();
      UnsafeRow row = (UnsafeRow) entry._2();
      scatter.append(partitioner.getPartition(entry._1()), row);
      bytes += row.getSizeInBytes();
      count++;
    }
    rowBytes = bytes;
    rows = count;
  }

  private void scatterCheckedRows(Iterator<Product2<K, V>> records, RowScatter scatter)
      throws IOException {
    Partitioner partitioner = dependency.partitioner();
    long bytes = 0;
    long count = 0;
    while (records.hasNext()) {
      Product2<K, V> entry = records.next();
      UnsafeRow row = (UnsafeRow) entry._2();
      int partition = partitioner.getPartition(entry._1());
      scatter.append(partition, row);
      checksums.update(partition, entry._1(), row);
      bytes += row.getSizeInBytes();
      count++;
    }
    rowBytes = bytes;
    rows = count;
  }

  private void publish(RowScatter scatter) throws IOException {
    long start = System.nanoTime();
    output.publish();
    long[] partitionBytes = output.partitionBytes();
    sizes.wrote(key.shuffleId(), partitionBytes);
    metrics.incWriteTime(scatter.nanos() + System.nanoTime() - start);
    metrics.incRecordsWritten(rows);
    metrics.incBytesWritten(sum(partitionBytes));
    RowSerializer serializer = RowSerializer.of(dependency.serializer());
    if (serializer.dataSize() != null) {
      serializer.dataSize().add(rowBytes);
    }
  }

  @Override
  public Option<MapStatus> stop(boolean success) {
    if (stopped) {
      return Option.empty();
    }
    stopped = true;
    if (!success) {
      output.close();
      return Option.empty();
    }
    return Option.apply(
        MapStatuses.create(
            SparkEnv.get().blockManager().shuffleServerId(),
            output.partitionBytes(),
            key.mapId(),
            checksums == null ? 0 : checksums.aggregate()));
  }

  @Override
  public long[] getPartitionLengths() {
    return output.partitionBytes();
  }

  private static long sum(long[] values) {
    long sum = 0;
    for (long value : values) {
      sum += value;
    }
    return sum;
  }
}
