package io.weft.spark.feed;

import java.io.IOException;
import java.util.Random;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/**
 * Hands rows on in a random order: it keeps so many rows and bytes, and where there is no room for
 * a row that comes, rows drawn at random go on. The order is a function of the seed and the rows,
 * as in TensorFlow's {@code Dataset.shuffle}. For one task thread.
 */
final class ShuffleBuffer {
  /** What is kept at most, however few rows that is. */
  static final long MOST_BYTES = 64L << 20;

  private final UnsafeRow[] kept;
  private final long mostBytes;
  private final Random random;
  private final RowTarget next;
  private int count;
  private long bytes;

  /** Where rows go. */
  interface RowTarget {
    void add(InternalRow row) throws IOException;
  }

  /**
   * Keeps nothing yet.
   *
   * @param rows kept at most, 1 or more
   * @param mostBytes of these rows; a row that is larger goes on at once
   */
  ShuffleBuffer(int rows, long mostBytes, long seed, RowTarget next) {
    this.kept = new UnsafeRow[rows];
    this.mostBytes = mostBytes;
    this.random = new Random(seed);
    this.next = next;
  }

  /** Takes a row, which is free to change afterwards. */
  void add(UnsafeRow row) throws IOException {
    int size = row.getSizeInBytes();
    while (count > 0 && (count == kept.length || bytes + size > mostBytes)) {
      letOneGo();
    }
    if (size > mostBytes) {
      next.add(row);
      return;
    }
    kept[count++] = row.copy();
    bytes += size;
  }

  /** Hands on what is left. */
  void finish() throws IOException {
    while (count > 0) {
      letOneGo();
    }
  }

  private void letOneGo() throws IOException {
    int drawn = random.nextInt(count);
    UnsafeRow row = kept[drawn];
    count--;
    kept[drawn] = kept[count];
    kept[count] = null;
    bytes -= row.getSizeInBytes();
    next.add(row);
  }

  /** Bytes of the rows that are kept now. */
  long bytes() {
    return bytes;
  }
}
