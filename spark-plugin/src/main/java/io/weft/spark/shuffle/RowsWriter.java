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
 * Writes packed SQL rows. A row is copied once between its writer and its reader, or written by
 * generated code: to the open chunk of its partition. Its format is the size as an int64, followed
 * by the bytes.
 *
 * <p>For one task thread.
 */
final class RowsWriter<K, V> extends RecordsWriter<K, V> {
  /** A row's checksum is of its bytes alone. */
  private static final Object NO_KEY = 0;

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

  /** The question would start a stage that writes its rows itself, before it has a target. */
  @Override
  boolean mayHaveRecords(Iterator<Product2<K, V>> records) {
    return stageOf(records) != 0 || super.mayHaveRecords(records);
  }

  @Override
  long append(Iterator<Product2<K, V>> records, PartitionChunks chunks) throws IOException {
    Partitioner partitioner = dependency.partitioner();
    ChunkTarget target = new ChunkTarget(chunks, records);
    boolean more = target.offer(stageOf(records), records::hasNext);
    while (more) {
      Product2<K, V> entry = records.next();
      target.write(partitioner.getPartition(entry._1()), (UnsafeRow) entry._2());
      more = records.hasNext();
    }
    rowBytes = target.bytes;
    return target.count;
  }

  private static long stageOf(Iterator<?> records) {
    return records instanceof RowTarget.Source source ? source.stage() : 0;
  }

  /** The open chunks as the target of rows, which it counts. */
  private final class ChunkTarget extends RowTarget {
    private final PartitionChunks chunks;
    private final RowTarget.Source source;
    private long bytes;
    private long count;

    ChunkTarget(PartitionChunks chunks, Iterator<?> records) {
      this.chunks = chunks;
      this.source = records instanceof RowTarget.Source one ? one : null;
    }

    @Override
    public UnsafeRow write(UnsafeRow row) throws IOException {
      write(source.partition(row), row);
      return null;
    }

    void write(int partition, UnsafeRow row) throws IOException {
      int length = row.getSizeInBytes();
      long at = room(partition, length);
      Memory.copyFrom(row.getBaseObject(), row.getBaseOffset(), at, length);
      UnsafeRow unused = wrote(partition, at, length);
    }

    @Override
    public long room(int partition, long bytes) throws IOException {
      long at = chunks.room(partition, Long.BYTES + bytes);
      Platform.putLong(null, at, bytes);
      return at + Long.BYTES;
    }

    @Override
    public UnsafeRow wrote(int partition, long address, long length) {
      chunks.wrote(partition, address + length);
      if (checksums != null) {
        sampled.pointTo(null, address, (int) length);
        checksums.update(partition, NO_KEY, sampled);
      }
      bytes += length;
      count++;
      return null;
    }
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
