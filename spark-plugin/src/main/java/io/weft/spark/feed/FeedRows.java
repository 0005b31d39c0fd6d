package io.weft.spark.feed;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;

/**
 * The rows of a map task on their way to the ranks: checked, and mixed where that is wanted. For
 * one task thread.
 */
final class FeedRows {
  /** Batches whose rows are mixed before they are dealt. */
  private static final int SHUFFLED_BATCHES = 16;

  private final FeedSpec spec;
  private UnsafeProjection projection;

  private FeedRows(FeedSpec spec) {
    this.spec = spec;
  }

  /**
   * Passes rows on.
   *
   * @param partition of the input
   * @param dealt takes them
   * @return how many there were
   * @throws IllegalArgumentException if a value is not what its column says
   */
  static long pass(
      Iterator<InternalRow> rows, FeedSpec spec, int partition, ShuffleBuffer.RowTarget dealt)
      throws IOException {
    return new FeedRows(spec).pass(rows, partition, dealt);
  }

  private long pass(Iterator<InternalRow> rows, int partition, ShuffleBuffer.RowTarget dealt)
      throws IOException {
    TensorCheck check = new TensorCheck(spec.schema(), partition);
    ShuffleBuffer buffer = spec.seed().map(seed -> buffer(seed, partition, dealt)).orElse(null);
    ShuffleBuffer.RowTarget target = buffer == null ? dealt : row -> buffer.add(unsafe(row));
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

  /** Rows of most plans are, and know how large they are. */
  private UnsafeRow unsafe(InternalRow row) {
    if (row instanceof UnsafeRow already) {
      return already;
    }
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

  private ShuffleBuffer buffer(long seed, int partition, ShuffleBuffer.RowTarget target) {
    long rows = Math.min((long) SHUFFLED_BATCHES * spec.batchRows(), Integer.MAX_VALUE / 64);
    return new ShuffleBuffer(
        (int) rows, ShuffleBuffer.MOST_BYTES, Seeds.of(seed, partition), target);
  }
}
