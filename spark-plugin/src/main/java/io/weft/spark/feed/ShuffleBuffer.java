package io.weft.spark.feed;

import java.io.IOException;
import java.util.Arrays;
import java.util.Random;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/**
 * Passes rows on in a random order. It keeps a limited number of rows and bytes. When a new row
 * does not fit, it passes on rows drawn at random. The order is a function of the seed and the
 * rows, as in TensorFlow's {@code Dataset.shuffle}. For one task thread.
 */
final class ShuffleBuffer {
  /** Limit of the kept bytes, independent of the number of rows. */
  static final long MOST_BYTES = 64L << 20;

  /**
   * Approximate memory of a row beside its bytes: the object, the array's header and the index
   * entry.
   */
  static final int ROW_OVERHEAD = 64;

  private static final int FIRST_PLACES = 256;

  private final int mostRows;
  private final long mostBytes;
  private final Random random;
  private final RowTarget next;
  private UnsafeRow[] kept;
  private int count;
  private long bytes;

  /** Receives rows. */
  interface RowTarget {
    void add(InternalRow row) throws IOException;
  }

  /**
   * Starts empty.
   *
   * @param rows kept at most, 1 or more
   * @param mostBytes limit of the memory of these rows, each with {@link #ROW_OVERHEAD} beside its
   *     bytes; a larger row is passed on at once
   */
  ShuffleBuffer(int rows, long mostBytes, long seed, RowTarget next) {
    this.mostRows = rows;
    this.kept = new UnsafeRow[Math.min(rows, FIRST_PLACES)];
    this.mostBytes = mostBytes;
    this.random = new Random(seed);
    this.next = next;
  }

  /** Takes a row; the caller may reuse it afterwards. */
  void add(UnsafeRow row) throws IOException {
    long size = taken(row);
    while (count > 0 && (count == mostRows || bytes + size > mostBytes)) {
      letOneGo();
    }
    if (size > mostBytes) {
      next.add(row);
      return;
    }
    if (count == kept.length) {
      kept = Arrays.copyOf(kept, (int) Math.min(mostRows, 2L * count));
    }
    kept[count++] = row.copy();
    bytes += size;
  }

  private static long taken(UnsafeRow row) {
    return (long) row.getSizeInBytes() + ROW_OVERHEAD;
  }

  /** Passes on the remaining rows. */
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
    bytes -= taken(row);
    next.add(row);
  }

  /** Memory in bytes of the rows that are kept now. */
  long bytes() {
    return bytes;
  }
}
