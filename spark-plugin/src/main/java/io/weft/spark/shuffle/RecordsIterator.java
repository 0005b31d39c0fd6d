package io.weft.spark.shuffle;

import io.weft.transfer.BlockFetchException;
import io.weft.transfer.ChunkReader;
import io.weft.transfer.FetchInterruptedException;
import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.unsafe.Platform;
import scala.Product2;
import scala.collection.AbstractIterator;

/**
 * Iterates over the records of one reduce task, chunk by chunk.
 *
 * <p>For one task thread.
 */
final class RecordsIterator<K, C> extends AbstractIterator<Product2<K, C>> {
  private static final int ALIGNMENT_MASK = Long.BYTES - 1;

  private final ChunkReader chunks;
  private final ShuffleBlocks blocks;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final RecordFormat<K, C> format;

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
    long room = end - at - Long.BYTES;
    long size = room < 0 ? -1 : Platform.getLong(null, at);
    if (size < 0 || size > room || size > Integer.MAX_VALUE || (size & ALIGNMENT_MASK) != 0) {
      throw corrupt("a record of " + size + " bytes where " + room + " are left");
    }
    long start = at + Long.BYTES;
    at = start + size;
    recordsOfChunk++;
    return format.read(start, (int) size);
  }

  /** Reports records read since the last report. */
  void report() {
    metrics.incRecordsRead(recordsOfChunk);
    recordsOfChunk = 0;
  }

  /** Advances to the next chunk with records. */
  private boolean advance() {
    context.killTaskIfInterrupted();
    try {
      do {
        endChunk();
        if (!chunks.next()) {
          at = end = 0;
          // Another call of the reader would free the memory of the last record.
          ended = true;
          return false;
        }
        at = chunks.address();
        end = at + chunks.length();
      } while (at == end);
      return true;
    } catch (BlockFetchException e) {
      throw Unchecked.<RuntimeException>raise(blocks.failure(e));
    } catch (FetchInterruptedException e) {
      context.killTaskIfInterrupted(); // Throws Spark's exception with the reason why the task was
      // killed.
      throw e;
    }
  }

  private void endChunk() {
    if (end != 0 && recordsOfChunk != chunks.rows()) {
      throw corrupt(recordsOfChunk + " records where the writer counted " + chunks.rows());
    }
    report();
  }

  private RuntimeException corrupt(String what) {
    String message =
        "Corrupt chunk of %s, partition %d, from executor %s: %s"
            .formatted(
                chunks.request().key(), chunks.partition(), chunks.request().executorId(), what);
    return Unchecked.<RuntimeException>raise(
        blocks.failure(chunks.request(), chunks.partition(), message, null));
  }
}
