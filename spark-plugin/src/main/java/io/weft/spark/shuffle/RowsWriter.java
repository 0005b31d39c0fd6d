package io.weft.spark.shuffle;

import io.weft.memory.Memory;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.compat.RowChecksums;
import io.weft.spark.compat.RowSerializer;
import io.weft.spark.shuffle.BlockSizes.RowSample;
import io.weft.spark.shuffle.BlockSizes.TaskSizes;
import io.weft.spark.shuffle.PartitionChunks.ChunkSizes;
import java.io.IOException;
import org.apache.spark.Partitioner;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Writes packed SQL rows. A row is copied once between its writer and its reader: to the open chunk
 * of its partition. Its format is the size as an int64, followed by the bytes.
 *
 * <p>For one task thread.
 */
final class RowsWriter<K, V> extends RecordsWriter<K, V> {
  private final ShuffleDependency<?, ?, ?> dependency;
  private final RowChecksums checksums;
  private final TaskSizes blockSizes;
  private final UnsafeRow sampled;
  private long rowBytes;

  RowsWriter(
      ShuffleDependency<?, ?, ?> dependency,
      BlockKey key,
      TaskContext context,
      ShuffleWriteMetricsReporter metrics,
      ExecutorExchange exchange,
      ChunkSizes sizes,
      BlockSizes blockSizes) {
    super(dependency, key, context, metrics, exchange, sizes);
    this.dependency = dependency;
    this.checksums = RowChecksums.of(dependency);
    this.blockSizes = blockSizes.open(key.shuffleId(), dependency.partitioner().numPartitions());
    this.sampled = new UnsafeRow(RowSerializer.of(dependency.serializer()).fields());
  }

  @Override
  long append(Iterator<Product2<K, V>> records, PartitionChunks chunks) throws IOException {
    return checksums == null ? rows(records, chunks) : checkedRows(records, chunks);
  }

  private long rows(Iterator<Product2<K, V>> records, PartitionChunks chunks) throws IOException {
    Partitioner partitioner = dependency.partitioner();
    long bytes = 0;
    long count = 0;
    while (records.hasNext()) {
      Product2<K, V> entry = records.next();
      UnsafeRow row = (UnsafeRow) entry._2();
      append(chunks, partitioner.getPartition(entry._1()), row);
      bytes += row.getSizeInBytes();
      count++;
    }
    rowBytes = bytes;
    return count;
  }

  private long checkedRows(Iterator<Product2<K, V>> records, PartitionChunks chunks)
      throws IOException {
    Partitioner partitioner = dependency.partitioner();
    long bytes = 0;
    long count = 0;
    while (records.hasNext()) {
      Product2<K, V> entry = records.next();
      UnsafeRow row = (UnsafeRow) entry._2();
      int partition = partitioner.getPartition(entry._1());
      append(chunks, partition, row);
      checksums.update(partition, entry._1(), row);
      bytes += row.getSizeInBytes();
      count++;
    }
    rowBytes = bytes;
    return count;
  }

  private static void append(PartitionChunks chunks, int partition, UnsafeRow row)
      throws IOException {
    int size = row.getSizeInBytes();
    long at = chunks.room(partition, (long) Long.BYTES + size);
    Platform.putLong(null, at, size);
    Memory.copyFrom(row.getBaseObject(), row.getBaseOffset(), at + Long.BYTES, size);
    chunks.wrote(partition, at + Long.BYTES + size);
  }

  @Override
  void committing(int partition, long address, long end, int records) {
    long packed = end - address - (long) Long.BYTES * records;
    if (blockSizes.add(partition, packed, records)) {
      RowSample sample = blockSizes.sample(partition);
      for (long at = address; at < end && !sample.isFull(); ) {
        int size = (int) Platform.getLong(null, at);
        sampled.pointTo(null, at + Long.BYTES, size);
        sample.add(sampled);
        at += Long.BYTES + size;
      }
    }
  }

  @Override
  protected long[] reportedBytes() {
    return blockSizes.reported(partitionBytes());
  }

  @Override
  void published() {
    RowSerializer serializer = RowSerializer.of(dependency.serializer());
    if (serializer.dataSize() != null) {
      serializer.dataSize().add(rowBytes);
    }
  }

  @Override
  protected long checksum() {
    return checksums == null ? 0 : checksums.aggregate();
  }
}
