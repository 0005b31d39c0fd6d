package io.weft.spark.shuffle;

import io.weft.catalog.BlockKey;
import io.weft.catalog.MapOutputWriter;
import io.weft.exchange.ExecutorExchange;
import io.weft.spark.config.Decommission;
import java.io.IOException;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.util.TaskCompletionListener;
import scala.Option;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Writes the records of one map task into the arena; how a record looks there is the subclass's.
 *
 * <p>For one task thread. Whatever way the task ends, its completion listener closes the output;
 * unless it was published, that frees every chunk.
 */
abstract class RecordsWriter<K, V> extends ShuffleWriter<K, V> {
  private final BlockKey key;
  private final TaskContext context;
  private final ShuffleWriteMetricsReporter metrics;
  private final ChunkSizes sizes;
  private final MapOutputWriter output;
  private final int partitions;
  private boolean stopped;

  RecordsWriter(
      ShuffleDependency<?, ?, ?> dependency,
      BlockKey key,
      TaskContext context,
      ShuffleWriteMetricsReporter metrics,
      ExecutorExchange exchange,
      ChunkSizes sizes) {
    this.key = key;
    this.context = context;
    this.metrics = metrics;
    this.sizes = sizes;
    this.partitions = dependency.partitioner().numPartitions();
    this.output = exchange.newMapOutput(key, partitions);
    context.addTaskCompletionListener((TaskCompletionListener) task -> output.close());
  }

  @Override
  public void write(Iterator<Product2<K, V>> records) throws IOException {
    if (!records.hasNext() && !Decommission.migratesShuffles(SparkEnv.get().conf())) {
      return; // Nobody asks for empty blocks, so there is nothing to publish.
    }
    PartitionChunks chunks =
        new PartitionChunks(
            output, context, partitions, sizes.last(key.shuffleId()), sizes.max(partitions));
    long count = append(records, chunks);
    chunks.finish();
    publish(chunks, count);
  }

  /** Writes all records; returns how many there were. */
  abstract long append(Iterator<Product2<K, V>> records, PartitionChunks chunks) throws IOException;

  /** Called once the output can be read. */
  void published() {}

  /** Of the records, in no order; 0 where Spark wants none. */
  long checksum() {
    return 0;
  }

  private void publish(PartitionChunks chunks, long count) throws IOException {
    long start = System.nanoTime();
    output.publish();
    long[] partitionBytes = output.partitionBytes();
    sizes.wrote(key.shuffleId(), partitionBytes);
    metrics.incWriteTime(chunks.nanos() + System.nanoTime() - start);
    metrics.incRecordsWritten(count);
    metrics.incBytesWritten(sum(partitionBytes));
    published();
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
            checksum()));
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
