package io.weft.spark.feed;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;

/**
 * Passes the rows of a map task to the ranks' writer: it checks them and, if requested, shuffles
 * them.
 */
final class FeedRows {
  /** Number of batches in the shuffle buffer. */
  private static final int SHUFFLED_BATCHES = 16;

  private FeedRows() {}

  /**
   * Passes all rows on.
   *
   * @param partition of the input
   * @param dealt receives the rows
   * @return the number of rows
   * @throws IllegalArgumentException if a value does not match its column's type
   */
  static long pass(
      Iterator<InternalRow> rows, FeedSpec spec, int partition, ShuffleBuffer.RowTarget dealt)
      throws IOException {
    TensorCheck check = new TensorCheck(spec.schema(), partition);
    ShuffleBuffer buffer =
        spec.seed().map(seed -> buffer(spec, partition, seed, dealt)).orElse(null);
    ShuffleBuffer.RowTarget target = buffer == null ? dealt : new UnsafeRows(spec, buffer);
    long count = 0;
    while (rows.hasNext()) {
      InternalRow row = rows.next();
      check.next(row);
      target.add(row);
      count++;
    }
    if (buffer != null) {
      buffer.finish();
    }
    return count;
  }

  /** Converts rows to UnsafeRows, whose size is known. Most plans already produce them. */
  private static final class UnsafeRows implements ShuffleBuffer.RowTarget {
    private final FeedSpec spec;
    private final ShuffleBuffer buffer;
    private UnsafeProjection projection;

    UnsafeRows(FeedSpec spec, ShuffleBuffer buffer) {
      this.spec = spec;
      this.buffer = buffer;
    }

    @Override
    public void add(InternalRow row) throws IOException {
      buffer.add(row instanceof UnsafeRow unsafe ? unsafe : projected(row));
    }

    private UnsafeRow projected(InternalRow row) {
      if (projection == null) {
        StructType schema = spec.schema();
        projection =
            UnsafeProjection.create(
                spec.byKey()
                    ? schema.add(FeedRequirements.RANK_COLUMN, DataTypes.IntegerType)
                    : schema);
      }
      return projection.apply(row);
    }
  }

  private static ShuffleBuffer buffer(
      FeedSpec spec, int partition, long seed, ShuffleBuffer.RowTarget target) {
    long rows = Math.min((long) SHUFFLED_BATCHES * spec.batchRows(), Integer.MAX_VALUE / 64);
    return new ShuffleBuffer(
        (int) rows, ShuffleBuffer.MOST_BYTES, Seeds.of(seed, partition), target);
  }
}
