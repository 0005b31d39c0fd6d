package io.weft.spark.feed;

import java.io.IOException;
import java.util.Random;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/**
 * Hands rows on in a random order: it keeps so many, and a row that comes takes the place of one
 * drawn at random, which goes on. The order is a function of the seed and the rows, as in
 * TensorFlow's {@code Dataset.shuffle}. For one task thread.
 */
final class ShuffleBuffer {
  /** More is not kept, however few rows that is. */
  private static final long MOST_BYTES = 64L << 20;

  private final InternalRow[] kept;
  private final Random random;
  private final RowTarget next;
  private int count;
  private long bytes;
  private boolean full;

  /** Where rows go. */
  interface RowTarget {
    void add(InternalRow row) throws IOException;
  }

  ShuffleBuffer(int rows, long seed, RowTarget next) {
    this.kept = new InternalRow[rows];
    this.random = new Random(seed);
    this.next = next;
  }

  /** Takes a row, which is free to change afterwards. */
  void add(InternalRow row) throws IOException {
    if (full) {
      int drawn = random.nextInt(count);
      next.add(kept[drawn]);
      kept[drawn] = row.copy();
      return;
    }
    kept[count++] = row.copy();
    bytes += row instanceof UnsafeRow unsafe ? unsafe.getSizeInBytes() : 0;
    full = count == kept.length || bytes >= MOST_BYTES;
  }

  /** Hands on what is left. */
  void finish() throws IOException {
    for (; count > 0; count--) {
      int drawn = random.nextInt(count);
      next.add(kept[drawn]);
      kept[drawn] = kept[count - 1];
      kept[count - 1] = null;
    }
  }
}
