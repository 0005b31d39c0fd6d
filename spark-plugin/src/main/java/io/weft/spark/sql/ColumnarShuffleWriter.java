package io.weft.spark.sql;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.columns.BatchChecksum;
import io.weft.spark.columns.BatchPartitioner;
import io.weft.spark.columns.BatchRows;
import io.weft.spark.columns.BatchScatter;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.shuffle.BlockSizes;
import io.weft.spark.shuffle.BlockSizes.RowSample;
import io.weft.spark.shuffle.BlockSizes.TaskSizes;
import io.weft.spark.shuffle.MapWriter;
import java.io.IOException;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Scatters the batches or rows of one map task over reduce partitions, as columns in the arena. For
 * one task thread.
 *
 * @param <K> unused for batches, the partition of a row
 * @param <V> batches or rows, as declared by the dependency
 */
final class ColumnarShuffleWriter<K, V> extends MapWriter<K, V> {
  /** Longest rows, on average, and longest chunks that are sampled, in Spark's packed format. */
  private static final long MAX_SAMPLED_ROW = 1 << 20;

  private static final long MAX_SAMPLED_CHUNK = 64 << 20;

  private final ColumnarShuffleDependency dependency;
  private final TaskContext context;
  private final ShuffleWriteMetricsReporter metrics;
  private final BatchScatter scatter;

  /** Null if Spark compares no checksums. */
  private final BatchChecksum checksum;

  private final TaskSizes sizes;
  private BatchRows packer;
  private long writeNanos;

  /** Opens the map output of one task attempt. */
  public ColumnarShuffleWriter(
      ColumnarShuffleDependency dependency,
      long mapId,
      TaskContext context,
      ShuffleWriteMetricsReporter metrics,
      ExecutorExchange exchange,
      BlockSizes sizes) {
    super(
        new BlockKey(dependency.shuffleId(), mapId), dependency.numPartitions(), context, exchange);
    this.dependency = dependency;
    this.context = context;
    this.metrics = metrics;
    SparkConf conf = SparkEnv.get().conf();
    this.scatter =
        new BatchScatter(
            dependency.schema(),
            dependency.numPartitions(),
            output(),
            WeftSettings.BATCH_ROWS.get(conf),
            WeftSettings.BATCH_SIZE.get(conf));
    this.checksum = dependency.hasRowChecksums() ? new BatchChecksum(dependency.schema()) : null;
    this.sizes = sizes.open(dependency.shuffleId(), dependency.numPartitions());
    scatter.listen(this::written);
    freeAtEnd(scatter::close);
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
    if (mustPublish(scatter.rows() > 0)) {
      output().publish();
    }
    writeNanos += System.nanoTime() - start;
    report();
  }

  private void writeBatches(Iterator<Product2<K, V>> records, BatchPartitioner partitioner)
      throws IOException {
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
      if (checksum != null) {
        checksum.add(batch, ids);
      }
      writeNanos += System.nanoTime() - start;
    }
  }

  private void writeRows(Iterator<Product2<K, V>> records) throws IOException {
    while (records.hasNext()) {
      Product2<K, V> record = records.next();
      UnsafeRow row = (UnsafeRow) record._2();
      int partition = (Integer) record._1();
      scatter.append(row, partition);
      if (checksum != null) {
        checksum.add(row, partition);
      }
    }
  }

  /** Notes the size of a chunk in Spark's format. */
  private void written(int partition, long address, long bytes, int rows, long packedBytes) {
    if (sizes.add(partition, packedBytes, rows) && !isLongForASample(packedBytes, rows)) {
      sample(partition, address, bytes);
    }
  }

  /**
   * Converts some rows of a chunk for a sample. Apart from the method that is called for each
   * chunk, because its loop would make the JIT compiler compile that one again and at length.
   */
  private void sample(int partition, long address, long bytes) {
    if (packer == null) {
      packer = new BatchRows(dependency.schema());
    }
    RowSample sample = sizes.sample(partition);
    var packed = packer.ofChunk(address, bytes);
    while (packed.hasNext() && !sample.isFull()) {
      sample.add((UnsafeRow) packed.next());
    }
  }

  /** A row is packed as a whole, even if a sample takes only its start. */
  private static boolean isLongForASample(long packedBytes, int rows) {
    return packedBytes > MAX_SAMPLED_CHUNK || packedBytes > MAX_SAMPLED_ROW * rows;
  }

  @Override
  protected long[] reportedBytes() {
    return sizes.reported(partitionBytes());
  }

  @Override
  protected long checksum() {
    return checksum == null ? 0 : checksum.value();
  }

  private void report() {
    metrics.incRecordsWritten(scatter.rows());
    metrics.incBytesWritten(writtenBytes());
    metrics.incWriteTime(writeNanos);
    dependency.exchangeMetrics().dataSize().add(scatter.packedBytes());
    dependency.exchangeMetrics().batchesWritten().add(scatter.batches());
  }
}
