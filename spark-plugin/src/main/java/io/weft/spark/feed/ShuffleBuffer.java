package io.weft.spark.feed;

import java.io.IOException;
import java.util.Arrays;
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

  /** What a row takes beside its bytes: its object, its array's header and its place, about. */
  static final int ROW_OVERHEAD = 64;

  private static final int FIRST_PLACES = 256;

  private final int mostRows;
  private final long mostBytes;
  private final Random random;
  private final RowTarget next;
  private UnsafeRow[] kept;
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
   * @param mostBytes of memory that these rows take, each {@link #ROW_OVERHEAD} beside its bytes; a
   *     row that is larger goes on at once
   */
  ShuffleBuffer(int rows, long mostBytes, long seed, RowTarget next) {
    this.mostRows = rows;
    this.kept = new UnsafeRow[Math.min(rows, FIRST_PLACES)];
    this.mostBytes = mostBytes;
    this.random = new Random(seed);
    this.next = next;
  }

  /** Takes a row, which is free to change afterwards. */
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
    bytes -= taken(row);
    next.add(row);
  }

  /** Bytes that the rows that are kept now take. */
  long bytes() {
    return bytes;
  }
}
