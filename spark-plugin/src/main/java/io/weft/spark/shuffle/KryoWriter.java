package io.weft.spark.shuffle;

import com.esotericsoftware.kryo.Kryo;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.shuffle.PartitionChunks.ChunkSizes;
import java.io.IOException;
import org.apache.spark.Partitioner;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.unsafe.Platform;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Writes the records of an RDD: the key and the value in Kryo's format. A tensor's bytes are copied
 * once, from its memory to the open chunk of the partition, encoded if the application sets a
 * codec. A record is its size as an int64, its bytes, and zeros up to a multiple of 8.
 *
 * <p>For one task thread.
 */
final class KryoWriter<K, V> extends RecordsWriter<K, V> {
  private static final int ALIGNMENT = Long.BYTES;

  /** Maximum bytes of a record: the size of an extent without the record's size and padding. */
  private static final long MAX_BYTES = Integer.MAX_VALUE - 127L;

  private final ShuffleDependency<?, ?, ?> dependency;
  private final Kryo kryo;
  private final RecordOutput record;

  KryoWriter(
      ShuffleDependency<?, ?, ?> dependency,
      BlockKey key,
      TaskContext context,
      ShuffleWriteMetricsReporter metrics,
      ExecutorExchange exchange,
      ChunkSizes sizes) {
    super(dependency, key, context, metrics, exchange, sizes);
    this.dependency = dependency;
    this.kryo = KryoRecords.newKryo(dependency.serializer());
    this.record = new RecordOutput(WeftSettings.TENSORS_CODEC.get(SparkEnv.get().conf()));
  }

  @Override
  long append(Iterator<Product2<K, V>> records, PartitionChunks chunks) throws IOException {
    Partitioner partitioner = dependency.partitioner();
    long count = 0;
    while (records.hasNext()) {
      Product2<K, V> entry = records.next();
      record.reset();
      kryo.writeClassAndObject(record, entry._1());
      kryo.writeClassAndObject(record, entry._2());
      append(chunks, partitioner.getPartition(entry._1()));
      count++;
    }
    return count;
  }

  private void append(PartitionChunks chunks, int partition) throws IOException {
    long bound = record.bound();
    if (bound > MAX_BYTES) {
      throw new IOException(
          "A record of up to "
              + bound
              + " bytes is too large for a chunk; the maximum is "
              + MAX_BYTES
              + ". Make its tensors smaller, or leave WeftKryoRegistrator out of"
              + " spark.kryo.registrator.");
    }
    long at = chunks.room(partition, Long.BYTES + bound + ALIGNMENT);
    long start = at + Long.BYTES;
    long end = start + record.place(start);
    while (((end - start) & (ALIGNMENT - 1)) != 0) {
      Platform.putByte(null, end++, (byte) 0);
    }
    Platform.putLong(null, at, end - start);
    chunks.wrote(partition, end);
  }
}
