package io.weft.spark.shuffle;

import io.weft.memory.Memory;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchInterruptedException;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.compat.ExternalSorters;
import io.weft.spark.shuffle.ShuffleBlocks.FetchMetrics;
import io.weft.spark.values.ValueReader;
import io.weft.spark.values.ValueReader.CorruptValueException;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.io.SequenceInputStream;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Objects;
import org.apache.spark.Aggregator;
import org.apache.spark.InterruptibleIterator;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.TaskContext;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.collection.ExternalSorter;
import scala.Option;
import scala.Product2;
import scala.Tuple2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.reflect.ClassTag;

/**
 * Reads the streams of {@link StreamWriter} in place, and combines and sorts the records with
 * Spark's aggregator and sorter as the dependency requests.
 *
 * <p>One thread at a time reads, as with {@link ChunkReader}.
 */
final class StreamReader<K, C> implements ShuffleReader<K, C> {
  private final ShuffleDependency<K, ?, C> dependency;
  private final ShuffleBlocks blocks;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final ExecutorExchange exchange;

  @SuppressWarnings("unchecked")
  StreamReader(
      ShuffleDependency<?, ?, ?> dependency,
      ShuffleBlocks blocks,
      TaskContext context,
      ShuffleReadMetricsReporter metrics,
      ExecutorExchange exchange) {
    this.dependency = (ShuffleDependency<K, ?, C>) dependency;
    this.blocks = blocks;
    this.context = context;
    this.metrics = metrics;
    this.exchange = exchange;
  }

  @Override
  public Iterator<Product2<K, C>> read() {
    ChunkReader chunks = exchange.read(blocks.requests(), new FetchMetrics(metrics, false));
    SerializerInstance serializer = dependency.serializer().newInstance();
    StreamedRecords<K, Object> records =
        new StreamedRecords<>(chunks, serializer, new TaskReport(context, blocks, metrics));
    context.addTaskCompletionListener(
        (TaskCompletionListener)
            task -> {
              records.reportRest();
              task.taskMetrics().mergeShuffleReadMetrics();
              chunks.close();
            });
    Iterator<Product2<K, Object>> stopping = new InterruptibleIterator<>(context, records);
    return combined(dependency, stopping);
  }

  /** Combines and sorts. The records' values have the class that the dependency implies. */
  @SuppressWarnings("unchecked")
  private <V> Iterator<Product2<K, C>> combined(
      ShuffleDependency<K, V, C> typed, Iterator<? extends Product2<K, ?>> records) {
    Option<Aggregator<K, V, C>> aggregator = typed.aggregator();
    Iterator<Product2<K, C>> combiners = (Iterator<Product2<K, C>>) records;
    Iterator<Product2<K, V>> values = (Iterator<Product2<K, V>>) records;
    Iterator<Product2<K, C>> all;
    if (aggregator.isEmpty()) {
      all = typed.keyOrdering().isEmpty() ? combiners : sorted(Option.empty(), combiners);
    } else if (typed.keyOrdering().isDefined()) {
      all =
          typed.mapSideCombine()
              ? sorted(Option.apply(ofCombiners(aggregator.get())), combiners)
              : sorted(aggregator, values);
    } else {
      Object tuples =
          typed.mapSideCombine()
              ? aggregator.get().combineCombinersByKey(combiners, context)
              : aggregator.get().combineValuesByKey(values, context);
      all = (Iterator<Product2<K, C>>) tuples;
    }
    return all instanceof InterruptibleIterator<?>
        ? all
        : new InterruptibleIterator<>(context, all);
  }

  private static <K, C> Aggregator<K, C, C> ofCombiners(Aggregator<K, ?, C> aggregator) {
    return new Aggregator<>(
        combiner -> combiner, aggregator.mergeCombiners(), aggregator.mergeCombiners());
  }

  private <V> Iterator<Product2<K, C>> sorted(
      Option<Aggregator<K, V, C>> aggregator, Iterator<Product2<K, V>> records) {
    ExternalSorter<K, V, C> sorter =
        ExternalSorters.create(
            context, aggregator, Option.empty(), dependency.keyOrdering(), dependency.serializer());
    return sorter.insertAllAndUpdateMetrics(records);
  }

  /** What an iterator over streams needs from its caller. */
  interface Report {
    /** Throws an exception if the task should end. */
    void checkKilled();

    /** Counts records that were read. */
    void read(long records);

    /**
     * Creates the exception for a block that cannot be read.
     *
     * @param cause or null
     */
    Exception failure(BlockRequest request, int partition, String message, Throwable cause);
  }

  /** Reports to Spark's task. */
  private record TaskReport(
      TaskContext context, ShuffleBlocks blocks, ShuffleReadMetricsReporter metrics)
      implements Report {
    @Override
    public void checkKilled() {
      context.killTaskIfInterrupted();
    }

    @Override
    public void read(long records) {
      metrics.incRecordsRead(records);
    }

    @Override
    public Exception failure(BlockRequest request, int partition, String message, Throwable cause) {
      return blocks.failure(request, partition, message, cause);
    }
  }

  /**
   * Iterates over the records of blocks, stream by stream, and frees the memory behind the last
   * one. Chunks of several blocks may alternate, so chunks whose stream continues are copied until
   * the rest of their block arrives.
   */
  static final class StreamedRecords<K, V> extends AbstractIterator<Product2<K, V>> {
    /** These are null after the end, because they grow with the partition's blocks. */
    private Report report;

    private ChunkReader chunks;

    private SerializerInstance serializer;
    private ValueReader values;
    private Map<Block, BeginOfStream> begun = new HashMap<>();

    /** The current stream, or null between streams. */
    private Iterator<Tuple2<Object, Object>> stream;

    private long recordsOfStream;
    private long expectedRecords;

    /** A map task's part of a partition. */
    private record Block(BlockKey map, int partition) {}

    /** Copies of a stream's chunks before its last one. */
    private static final class BeginOfStream {
      private final List<InputStream> copies = new ArrayList<>();
      private long records;
    }

    StreamedRecords(ChunkReader chunks, SerializerInstance serializer, Report report) {
      this.chunks = chunks;
      this.serializer = serializer;
      this.values = new ValueReader(schema -> serializer.deserialize(schema, ClassTag.Any()));
      this.report = report;
    }

    @Override
    public boolean hasNext() {
      while (chunks != null) {
        if (stream != null && stream.hasNext()) {
          return true;
        }
        advance();
      }
      return false;
    }

    @Override
    @SuppressWarnings("unchecked")
    public Product2<K, V> next() {
      if (!hasNext()) {
        throw new NoSuchElementException("all records of this partition have been read");
      }
      recordsOfStream++;
      chunks.use();
      try {
        return (Product2<K, V>) (Product2<?, ?>) stream.next();
      } catch (CorruptValueException e) {
        throw corrupt(e.getMessage());
      }
    }

    /** Reports the records of the current stream at the end of the task. Changes nothing else. */
    void reportRest() {
      if (report != null) {
        report.read(recordsOfStream);
      }
    }

    /** Advances to the next stream, or frees everything after the last one. */
    private void advance() {
      report.checkKilled();
      try {
        endStream();
        if (!chunks.next()) {
          end();
        } else {
          startChunk();
        }
      } catch (BlockFetchException e) {
        throw SneakyThrow.<RuntimeException>raise(
            report.failure(e.request(), e.partition(), e.getMessage(), e));
      } catch (FetchInterruptedException e) {
        // Throws Spark's exception with the reason why the task was killed.
        report.checkKilled();
        throw e;
      }
    }

    private void endStream() {
      if (stream != null && recordsOfStream != expectedRecords) {
        throw corrupt(recordsOfStream + " records where the writer counted " + expectedRecords);
      }
      stream = null;
      report.read(recordsOfStream);
      recordsOfStream = 0;
    }

    private void startChunk() {
      ChunkInput input = new ChunkInput(chunks);
      int header = input.read();
      Block block = new Block(chunks.request().key(), chunks.partition());
      if (header == StreamWriter.VALUES && !begun.containsKey(block)) {
        long address = chunks.address() + StreamWriter.HEADER_BYTES;
        values.open(address, chunks.address() + chunks.length());
        expectedRecords = chunks.rows();
        stream = values;
      } else if (header == StreamWriter.MORE) {
        BeginOfStream begin = begun.computeIfAbsent(block, unused -> new BeginOfStream());
        begin.copies.add(new ByteArrayInputStream(input.readRest()));
        begin.records += chunks.rows();
      } else if (header == StreamWriter.LAST) {
        BeginOfStream begin = begun.remove(block);
        expectedRecords = chunks.rows() + (begin == null ? 0 : begin.records);
        stream = serializer.deserializeStream(joined(begin, input)).asKeyValueIterator();
      } else {
        throw corrupt("it has the header " + header);
      }
    }

    private static InputStream joined(BeginOfStream begin, InputStream last) {
      if (begin == null) {
        return last;
      }
      begin.copies.add(last);
      return new SequenceInputStream(Collections.enumeration(begin.copies));
    }

    private void end() {
      if (!begun.isEmpty()) {
        throw corrupt("the rest of its stream is missing");
      }
      chunks.close();
      report = null;
      chunks = null;
      serializer = null;
      values = null;
      begun = null;
    }

    private RuntimeException corrupt(String what) {
      String message =
          "Corrupt chunk of %s, partition %d, from executor %s: %s"
              .formatted(
                  chunks.request().key(), chunks.partition(), chunks.request().executorId(), what);
      return SneakyThrow.<RuntimeException>raise(
          report.failure(chunks.request(), chunks.partition(), message, null));
    }
  }

  /** The bytes of the current chunk, in place. Valid until the reader advances. */
  static final class ChunkInput extends InputStream {
    private final ChunkReader chunks;
    private final long end;
    private long at;

    ChunkInput(ChunkReader chunks) {
      this.chunks = chunks;
      this.at = chunks.address();
      this.end = at + chunks.length();
    }

    @Override
    public int read() {
      if (at == end) {
        return -1;
      }
      chunks.use();
      return Memory.getByte(at++) & 0xFF;
    }

    @Override
    public int read(byte[] target, int offset, int count) {
      Objects.checkFromIndexSize(offset, count, target.length);
      int bytes = (int) Math.min(count, end - at);
      if (bytes == 0) {
        return count == 0 ? 0 : -1;
      }
      chunks.use();
      Memory.copyTo(at, target, Memory.BYTE_ARRAY + offset, bytes);
      at += bytes;
      return bytes;
    }

    byte[] readRest() {
      byte[] rest = new byte[available()];
      int unused = read(rest, 0, rest.length);
      return rest;
    }

    @Override
    public int available() {
      return (int) Math.min(Integer.MAX_VALUE, end - at);
    }
  }
}
