package io.weft.spark.shuffle;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchInterruptedException;
import io.weft.shuffle.fetch.FetchListener;
import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.util.MutablePair;
import org.apache.spark.util.TaskCompletionListener;
import scala.Product2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * Reads the records of one partition in place. Frees the partition's memory when its last record is
 * handed out, because a task may read thousands of partitions in turn. Otherwise the task's
 * completion listener frees it. The listener stays until the task ends, so it refers to nothing
 * that grows with the partition's blocks.
 *
 * <p>One thread at a time reads, as with {@link ChunkReader}.
 */
final class RecordsReader<K, C> implements ShuffleReader<K, C> {
  private final ShuffleBlocks blocks;
  private final RecordFormat<K, C> format;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final ExecutorExchange exchange;
  private final FetchListener fetches;

  RecordsReader(
      ShuffleBlocks blocks,
      RecordFormat<K, C> format,
      TaskContext context,
      ShuffleReadMetricsReporter metrics,
      ExecutorExchange exchange,
      FetchListener fetches) {
    this.blocks = blocks;
    this.format = format;
    this.context = context;
    this.metrics = metrics;
    this.exchange = exchange;
    this.fetches = fetches;
  }

  @Override
  public Iterator<Product2<K, C>> read() {
    ChunkReader chunks = exchange.read(blocks.requests(), fetches);
    RecordsIterator<K, C> records = new RecordsIterator<>(chunks, blocks, format, context, metrics);
    context.addTaskCompletionListener(
        (TaskCompletionListener)
            task -> {
              records.reportRest();
              task.taskMetrics().mergeShuffleReadMetrics();
              chunks.close();
            });
    return records;
  }

  /**
   * Reads packed rows in place with one reused row object. As with Spark's reader, a row is valid
   * until the next one, and the last row is valid for ever: it is copied.
   */
  static final class PackedRows<K, C> implements RecordFormat<K, C> {
    private final UnsafeRow row;
    private final Product2<K, C> pair;

    /**
     * @param fields number of columns of a row
     */
    @SuppressWarnings("unchecked")
    PackedRows(int fields) {
      this.row = new UnsafeRow(fields);
      this.pair = (Product2<K, C>) new MutablePair<Object, Object>(0, row);
    }

    @Override
    public Product2<K, C> read(long address, int bytes) {
      row.pointTo(null, address, bytes);
      return pair;
    }

    @Override
    public void detach() {
      row.pointTo(row.getBytes(), Platform.BYTE_ARRAY_OFFSET, row.getSizeInBytes());
    }
  }

  /**
   * Iterates over the records of one partition, chunk by chunk. Looks for the next chunk before it
   * hands out the last record of a chunk. So it knows the partition's last record, detaches it and
   * frees the memory.
   */
  static final class RecordsIterator<K, C> extends AbstractIterator<Product2<K, C>> {
    private static final int ALIGNMENT_MASK = Long.BYTES - 1;

    /** Records between two checks for a kill: a task may take long for each. */
    private static final int KILL_CHECK_RECORDS = 16;

    private final TaskContext context;
    private final ShuffleReadMetricsReporter metrics;

    /** These three are null after the end. */
    private ChunkReader chunks;

    private ShuffleBlocks blocks;
    private RecordFormat<K, C> format;

    private long at;
    private long end;
    private long recordsOfChunk;
    private boolean ended;

    RecordsIterator(
        ChunkReader chunks,
        ShuffleBlocks blocks,
        RecordFormat<K, C> format,
        TaskContext context,
        ShuffleReadMetricsReporter metrics) {
      this.chunks = chunks;
      this.blocks = blocks;
      this.context = context;
      this.metrics = metrics;
      this.format = format;
    }

    @Override
    public boolean hasNext() {
      return at < end || (!ended && advance());
    }

    @Override
    public Product2<K, C> next() {
      if (!hasNext()) {
        throw new NoSuchElementException("all records of this partition have been read");
      }
      chunks.use();
      long room = end - at - Long.BYTES;
      long size = room < 0 ? -1 : Platform.getLong(null, at);
      if (size < 0 || size > room || size > Integer.MAX_VALUE || (size & ALIGNMENT_MASK) != 0) {
        throw corrupt("a record of " + size + " bytes where " + room + " are left");
      }
      long start = at + Long.BYTES;
      at = start + size;
      if (++recordsOfChunk % KILL_CHECK_RECORDS == 0) {
        context.killTaskIfInterrupted();
      }
      Product2<K, C> record = format.read(start, (int) size);
      if (at == end) {
        // The record stays readable: a chunk outlives the first advance after it.
        boolean unused = advance();
      }
      return record;
    }

    /**
     * Reports the records of the current chunk at the end of the task. Changes nothing, because
     * another thread may still read.
     */
    void reportRest() {
      metrics.incRecordsRead(recordsOfChunk);
    }

    /** Advances to the next chunk. Frees everything and returns false after the last one. */
    private boolean advance() {
      context.killTaskIfInterrupted();
      try {
        endChunk();
        if (!chunks.next()) {
          end();
          return false;
        }
        at = chunks.address();
        end = at + chunks.length();
        if (at == end) {
          throw corrupt("it has no bytes");
        }
        return true;
      } catch (BlockFetchException e) {
        throw SneakyThrow.<RuntimeException>raise(blocks.failure(e));
      } catch (FetchInterruptedException e) {
        context
            .killTaskIfInterrupted(); // Throws Spark's exception with the reason why the task was
        // killed.
        throw e;
      }
    }

    private void end() {
      ended = true;
      at = end = 0;
      format.detach();
      chunks.close();
      chunks = null;
      blocks = null;
      format = null;
    }

    private void endChunk() {
      if (end != 0 && recordsOfChunk != chunks.rows()) {
        throw corrupt(recordsOfChunk + " records where the writer counted " + chunks.rows());
      }
      metrics.incRecordsRead(recordsOfChunk);
      recordsOfChunk = 0;
    }

    private RuntimeException corrupt(String what) {
      String message =
          "Corrupt chunk of %s, partition %d, from executor %s: %s"
              .formatted(
                  chunks.request().key(), chunks.partition(), chunks.request().executorId(), what);
      return SneakyThrow.<RuntimeException>raise(
          blocks.failure(chunks.request(), chunks.partition(), message, null));
    }
  }

  /** Reads records from bytes. For one thread at a time. */
  interface RecordFormat<K, C> {
    /**
     * Reads a record.
     *
     * @param bytes a multiple of 8
     */
    Product2<K, C> read(long address, int bytes);

    /** Copies what the last record shares with the memory that it was read from, if anything. */
    default void detach() {}
  }
}
