package io.weft.spark.shuffle;

import io.weft.memory.Memory;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.compat.ExternalSorters;
import io.weft.spark.shuffle.JavaStream.CountedOutput;
import io.weft.spark.shuffle.PartitionChunks.ChunkSizes;
import io.weft.spark.values.ValueWriter;
import java.io.IOException;
import java.util.Arrays;
import org.apache.spark.Aggregator;
import org.apache.spark.Partitioner;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.serializer.SerializationStream;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.sort.SortShuffleWriter;
import org.apache.spark.util.collection.ExternalSorter;
import scala.Option;
import scala.Product2;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.math.Ordering;
import scala.reflect.ClassTag;

/**
 * Writes the records of an RDD straight into the open chunks. A chunk is a header byte and then
 * whole records of {@link ValueWriter}, {@link #VALUES}, or bytes of one stream of the shuffle's
 * serializer, {@link #LAST} or {@link #MORE}. A chunk with {@link #MORE} continues in the next
 * chunk of its block. {@link #LAST} ends a stream, and a chunk that is nearly full ends its stream
 * after a record. So a reader seldom joins chunks.
 *
 * <p>Java's serialization is slow, so it serves only records with other objects than known values.
 * Such a record begins a stream, which takes all records of its partition until the chunk is full.
 *
 * <p>Records reach the streams in one of three ways, as in Spark's sort shuffle:
 *
 * <ul>
 *   <li>If serialized records can be reordered (Kryo), one stream serializes all records.
 *   <li>Else, if there are few partitions, each has a stream ({@code
 *       spark.shuffle.sort.bypassMergeThreshold}).
 *   <li>With many partitions, or if the map task combines values, Spark's sorter collects the
 *       records first. It spills with Spark's own memory and files.
 * </ul>
 *
 * <p>For one task thread.
 */
final class StreamWriter<K, V> extends RecordsWriter<K, V> {
  /** Header of a chunk at whose end its stream ends. All are odd, as no size of a row is. */
  static final byte LAST = 1;

  /** Header of a chunk whose stream continues in the block's next chunk. */
  static final byte MORE = 3;

  /** Header of a chunk of known values. */
  static final byte VALUES = 5;

  /** Bytes of the header. */
  static final int HEADER_BYTES = 1;

  /** About the bytes after which a stream of Java's serialization forgets its objects. */
  private static final long RESET_BYTES = 64 << 10;

  /** The same for all open streams of a task together. */
  private static final long RESET_BYTES_OF_ALL = 4 << 20;

  /** With less free, a chunk gets no further record of known values. */
  private static final int LEAST_ROOM = 16;

  private final ShuffleDependency<K, V, ?> dependency;
  private final TaskContext context;
  private final SerializerInstance serializer;

  /** Null if the serializer is not Java's. */
  private final ValueWriter values;

  /** Headers of the partitions' open chunks. */
  private final byte[] headers;

  /** What the partitions' open chunks have {@link ValueWriter#defined}. */
  private final int[] defined;

  /** Bytes of a partition's stream before the open chunk, which its reader has to copy. */
  private final long[] joined;

  @SuppressWarnings("unchecked")
  StreamWriter(
      ShuffleDependency<?, ?, ?> dependency,
      BlockKey key,
      TaskContext context,
      ShuffleWriteMetricsReporter metrics,
      ExecutorExchange exchange,
      ChunkSizes sizes) {
    super(dependency, key, context, metrics, exchange, sizes);
    this.dependency = (ShuffleDependency<K, V, ?>) dependency;
    this.context = context;
    this.serializer = dependency.serializer().newInstance();
    this.values =
        JavaStream.replaces(dependency.serializer(), SparkEnv.get().conf())
            ? new ValueWriter(schema -> serializer.serialize(schema, ClassTag.Any()))
            : null;
    int partitions = dependency.partitioner().numPartitions();
    this.headers = new byte[partitions];
    this.defined = new int[partitions];
    this.joined = new long[partitions];
    Arrays.fill(headers, LAST);
  }

  @Override
  int headerBytes() {
    return HEADER_BYTES;
  }

  @Override
  void committing(int partition, long address, long end, int records) {
    Memory.putByte(address, headers[partition]);
    joined[partition] = headers[partition] == MORE ? joined[partition] + end - address : 0;
    defined[partition] = 0;
  }

  @Override
  long append(Iterator<Product2<K, V>> records, PartitionChunks chunks) throws IOException {
    if (dependency.mapSideCombine()) {
      return combined(dependency, records, chunks);
    }
    if (dependency.serializer().supportsRelocationOfSerializedObjects()) {
      return reordered(records, chunks);
    }
    return SortShuffleWriter.shouldBypassMergeSort(SparkEnv.get().conf(), dependency)
        ? parallel(records, chunks)
        : sorted(Option.empty(), Option.empty(), records, chunks);
  }

  /** Serializes all records with one stream, and flushes each to its partition. */
  private long reordered(Iterator<Product2<K, V>> records, PartitionChunks chunks)
      throws IOException {
    Partitioner partitioner = dependency.partitioner();
    ChunkOutput output = new ChunkOutput(chunks);
    SerializationStream stream = serializer.serializeStream(output);
    long count = 0;
    while (records.hasNext()) {
      Product2<K, V> record = records.next();
      int partition = partitioner.getPartition(record._1());
      output.partition = partition;
      headers[partition] = MORE;
      write(stream, record);
      stream.flush();
      headers[partition] = LAST;
      chunks.endRecord(partition);
      if (chunks.isNearlyFull(partition) || joined[partition] >= chunks.maxPiece()) {
        chunks.commitNow(partition);
      }
      count++;
    }
    output.partition = ChunkOutput.DISCARD;
    stream.close();
    return count;
  }

  /** Serializes the records of each partition with a stream of its own. */
  private long parallel(Iterator<Product2<K, V>> records, PartitionChunks chunks)
      throws IOException {
    Partitioner partitioner = dependency.partitioner();
    PartitionStream[] streams = new PartitionStream[partitioner.numPartitions()];
    long count = 0;
    while (records.hasNext()) {
      Product2<K, V> record = records.next();
      int partition = partitioner.getPartition(record._1());
      if (streams[partition] == null) {
        streams[partition] = new PartitionStream(this, chunks, partition, streams.length);
      }
      streams[partition].add(record);
      count++;
    }
    for (PartitionStream stream : streams) {
      if (stream != null) {
        stream.end();
      }
    }
    return count;
  }

  private <C> long combined(
      ShuffleDependency<K, V, C> combining,
      Iterator<Product2<K, V>> records,
      PartitionChunks chunks)
      throws IOException {
    return sorted(combining.aggregator(), combining.keyOrdering(), records, chunks);
  }

  /** Serializes one partition after the other, in the order of Spark's sorter. */
  private <C> long sorted(
      Option<Aggregator<K, V, C>> aggregator,
      Option<Ordering<K>> ordering,
      Iterator<Product2<K, V>> records,
      PartitionChunks chunks)
      throws IOException {
    ExternalSorter<K, V, C> sorter =
        ExternalSorters.create(
            context,
            aggregator,
            Option.apply(dependency.partitioner()),
            ordering,
            dependency.serializer());
    freeAtEnd(sorter::stop);
    sorter.insertAll(records);
    long count = 0;
    Iterator<Tuple2<Object, Iterator<Product2<K, C>>>> partitions = sorter.partitionedIterator();
    while (partitions.hasNext()) {
      Tuple2<Object, Iterator<Product2<K, C>>> partition = partitions.next();
      PartitionStream stream = new PartitionStream(this, chunks, (Integer) partition._1(), 1);
      Iterator<Product2<K, C>> elements = partition._2();
      while (elements.hasNext()) {
        stream.add(elements.next());
        count++;
      }
      stream.end();
    }
    context.taskMetrics().incMemoryBytesSpilled(sorter.memoryBytesSpilled());
    context.taskMetrics().incDiskBytesSpilled(sorter.diskBytesSpilled());
    context.taskMetrics().incPeakExecutionMemory(sorter.peakMemoryUsedBytes());
    sorter.stop();
    return count;
  }

  /** Writes a record as known values, unless it has others or is longer than an empty chunk. */
  private boolean writeValues(Product2<?, ?> record, int partition, PartitionChunks chunks)
      throws IOException {
    long at = chunks.room(partition, LEAST_ROOM);
    long end = writeValues(record, partition, chunks, at);
    if (end == ValueWriter.NO_ROOM && chunks.hasRecords(partition)) {
      at = chunks.room(partition, chunks.limit(partition) - at + 1);
      end = writeValues(record, partition, chunks, at);
    }
    if (end < 0) {
      return false;
    }
    headers[partition] = VALUES;
    defined[partition] = values.defined();
    chunks.wrote(partition, end);
    return true;
  }

  private long writeValues(Product2<?, ?> record, int partition, PartitionChunks chunks, long at) {
    return values.write(at, chunks.limit(partition), defined[partition], record._1(), record._2());
  }

  private SerializationStream open(ChunkOutput output, long resetBytes) throws IOException {
    return values != null
        ? new JavaStream(output, resetBytes, SparkEnv.get().conf())
        : serializer.serializeStream(output);
  }

  private static void write(SerializationStream stream, Product2<?, ?> record) {
    stream.writeKey(record._1(), ClassTag.Any());
    stream.writeValue(record._2(), ClassTag.Any());
  }

  /** The stream of one partition. Begins again in each chunk. */
  private static final class PartitionStream {
    private final StreamWriter<?, ?> writer;
    private final PartitionChunks chunks;
    private final ChunkOutput output;
    private final int partition;
    private final long resetBytes;
    private SerializationStream stream;
    private long begin;

    /**
     * @param open maximum number of streams that are open at once
     */
    PartitionStream(StreamWriter<?, ?> writer, PartitionChunks chunks, int partition, int open) {
      this.writer = writer;
      this.resetBytes = Math.min(RESET_BYTES, RESET_BYTES_OF_ALL / open);
      this.chunks = chunks;
      this.output = new ChunkOutput(chunks);
      this.partition = partition;
      output.partition = partition;
    }

    void add(Product2<?, ?> record) throws IOException {
      if (stream == null && writer.values != null) {
        if (writer.writeValues(record, partition, chunks)) {
          return;
        }
        chunks.endChunk(partition);
      }
      if (stream == null) {
        writer.headers[partition] = MORE;
        begin = output.count();
        stream = writer.open(output, resetBytes);
      }
      write(stream, record);
      chunks.endRecord(partition);
      // A long stream in many chunks would have to be copied by its reader.
      if (chunks.isNearlyFull(partition) || output.count() - begin >= chunks.maxPiece()) {
        end();
      }
    }

    /** Ends the chunk, and the stream if there is one. The next record begins another one. */
    void end() throws IOException {
      if (stream == null) {
        chunks.endChunk(partition);
        return;
      }
      stream.close();
      stream = null;
      writer.headers[partition] = LAST;
      chunks.commitNow(partition);
    }
  }

  /** Copies what a serializer writes to the chunk of a partition. */
  private static final class ChunkOutput extends CountedOutput {
    /** A partition for what a stream writes after its last record. */
    static final int DISCARD = -1;

    private final PartitionChunks chunks;
    private int partition = DISCARD;
    private long count;

    ChunkOutput(PartitionChunks chunks) {
      this.chunks = chunks;
    }

    @Override
    public void write(int oneByte) throws IOException {
      if (partition != DISCARD) {
        long at = chunks.room(partition, 1);
        Memory.putByte(at, (byte) oneByte);
        chunks.wrotePiece(partition, at + 1);
        count++;
      }
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
      int done = 0;
      while (done < length && partition != DISCARD) {
        int piece = (int) Math.min(length - done, chunks.maxPiece());
        long at = chunks.room(partition, piece);
        Memory.copyFrom(bytes, Memory.BYTE_ARRAY + offset + done, at, piece);
        chunks.wrotePiece(partition, at + piece);
        done += piece;
      }
      count += length;
    }

    @Override
    long count() {
      return count;
    }
  }
}
