package io.weft.spark.shuffle;

import io.weft.transfer.BlockFetchException;
import io.weft.transfer.ChunkReader;
import io.weft.transfer.FetchInterruptedException;
import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.util.MutablePair;
import scala.Product2;
import scala.collection.AbstractIterator;

/**
 * Points one row object at row after row where they lie. As with Spark's own reader, a row is good
 * until the next one is asked for; the last one until the task ends.
 *
 * <p>For one task thread.
 */
final class RowsIterator<K, C> extends AbstractIterator<Product2<K, C>> {
  private static final int ALIGNMENT_MASK = Long.BYTES - 1;

  private final ChunkReader chunks;
  private final ShuffleBlocks blocks;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final UnsafeRow row;
  private final Product2<K, C> pair;

  private long at;
  private long end;
  private long rowsOfChunk;
  private boolean ended;

  @SuppressWarnings("unchecked")
  RowsIterator(
      ChunkReader chunks,
      ShuffleBlocks blocks,
      int fields,
      TaskContext context,
      ShuffleReadMetricsReporter metrics) {
    this.chunks = chunks;
    this.blocks = blocks;
    this.context = context;
    this.metrics = metrics;
    this.row = new UnsafeRow(fields);
    this.pair = (Product2<K, C>) new MutablePair<Object, Object>(0, row);
  }

  @Override
  public boolean hasNext() {
    return at < end || (!ended && advance());
  }

  @Override
  public Product2<K, C> next() {
    if (!hasNext()) {
      throw new NoSuchElementException("all rows of this partition have been read");
    }
    long room = end - at - Long.BYTES;
    long size = room < 0 ? -1 : Platform.getLong(null, at);
    if (size < 0 || size > room || size > Integer.MAX_VALUE || (size & ALIGNMENT_MASK) != 0) {
      throw corrupt("a row of " + size + " bytes where " + room + " are left");
    }
    row.pointTo(null, at + Long.BYTES, (int) size);
    at += Long.BYTES + size;
    rowsOfChunk++;
    return pair;
  }

  /** Reports the rows read since the last report. */
  void report() {
    metrics.incRecordsRead(rowsOfChunk);
    rowsOfChunk = 0;
  }

  /** Moves to the next chunk that has rows. */
  private boolean advance() {
    context.killTaskIfInterrupted();
    try {
      do {
        endChunk();
        if (!chunks.next()) {
          at = end = 0;
          // Asking the reader again would give back the memory of the last row.
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
      context.killTaskIfInterrupted(); // Spark's own exception says why the task was killed.
      throw e;
    }
  }

  private void endChunk() {
    if (end != 0 && rowsOfChunk != chunks.rows()) {
      throw corrupt(rowsOfChunk + " rows where the writer counted " + chunks.rows());
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
