package io.weft.spark.shuffle;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.shuffle.PartitionChunks.ChunkSizes;
import java.io.IOException;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Writes the records of one map task into the arena. The subclass defines the format of a record.
 *
 * <p>For one task thread.
 */
abstract class RecordsWriter<K, V> extends MapWriter<K, V> {
  private final TaskContext context;
  private final ShuffleWriteMetricsReporter metrics;
  private final ChunkSizes sizes;
  private final int partitions;

  RecordsWriter(
      ShuffleDependency<?, ?, ?> dependency,
      BlockKey key,
      TaskContext context,
      ShuffleWriteMetricsReporter metrics,
      ExecutorExchange exchange,
      ChunkSizes sizes) {
    super(key, dependency.partitioner().numPartitions(), context, exchange);
    this.context = context;
    this.metrics = metrics;
    this.sizes = sizes;
    this.partitions = dependency.partitioner().numPartitions();
  }

  @Override
  public void write(Iterator<Product2<K, V>> records) throws IOException {
    if (!mustPublish(mayHaveRecords(records))) {
      return;
    }
    PartitionChunks chunks =
        new PartitionChunks(
            output(),
            context,
            partitions,
            sizes.last(key().shuffleId()),
            sizes.max(partitions),
            headerBytes(),
            this::committing);
    long count = append(records, chunks);
    if (!mustPublish(count > 0)) {
      return;
    }
    chunks.finish();
    publish(chunks, count);
  }

  /** Returns false only if there are no records. */
  boolean mayHaveRecords(Iterator<Product2<K, V>> records) {
    return records.hasNext();
  }

  /** Writes all records and returns their number. */
  abstract long append(Iterator<Product2<K, V>> records, PartitionChunks chunks) throws IOException;

  /** The room that a chunk keeps before its first record, for {@link #committing}. */
  int headerBytes() {
    return 0;
  }

  /** Called before a chunk is committed, while its records are readable. */
  void committing(int partition, long address, long end, int records) {}

  /** Called after the output is published. */
  void published() {}

  private void publish(PartitionChunks chunks, long count) throws IOException {
    long start = System.nanoTime();
    output().publish();
    if (count > 0) {
      sizes.wrote(key().shuffleId(), output().partitionBytes());
    }
    metrics.incWriteTime(chunks.nanos() + System.nanoTime() - start);
    metrics.incRecordsWritten(count);
    metrics.incBytesWritten(writtenBytes());
    published();
  }
}
