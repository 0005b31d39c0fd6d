package io.weft.spark.feed;

import io.weft.spark.columns.BatchPartitioner;
import io.weft.spark.columns.ExactScatter;
import io.weft.spark.columns.HashBatchPartitioner;
import io.weft.spark.compat.ScalaInterop;
import io.weft.spark.feed.FeedRows.RankedBatches;
import java.io.IOException;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * Passes batches of a query on GPUs to a map task's output on the host. A batch is copied to the
 * host once, and then column by column.
 */
final class FeedColumns {
  private FeedColumns() {}

  /**
   * Passes all batches on. Those that need checks by rows, or are on the host, become rows.
   *
   * @param keys numbers of the feed's key columns
   * @param partition of the input
   * @return the number of rows
   * @throws IllegalArgumentException if a value does not match its column's type
   */
  static long pass(
      Iterator<ColumnarBatch> batches,
      FeedSpec spec,
      List<Integer> keys,
      int partition,
      ExactScatter target)
      throws IOException {
    TensorCheck check = new TensorCheck(spec.schema(), partition);
    BatchPartitioner ranks = ranks(spec, keys);
    RankedBatches conversion = new RankedBatches(spec, keys);
    int rankOrdinal = spec.schema().size();
    int[] lanes = new int[0];
    long count = 0;
    while (batches.hasNext()) {
      ColumnarBatch batch = batches.next();
      int rows = batch.numRows();
      count += rows;
      if (check.areValid(batch)) {
        lanes = lanes.length < rows ? new int[rows] : lanes;
        ranks.partitionIds(batch, lanes);
        target.append(batch, lanes);
        check.skip(rows);
        continue;
      }
      Iterator<InternalRow> each = conversion.rows(batch);
      while (each.hasNext()) {
        InternalRow row = each.next();
        check.next(row);
        target.append(row, spec.byKey() ? row.getInt(rankOrdinal) : 0);
      }
    }
    return count;
  }

  /** The lane of each row. */
  @SuppressWarnings("unchecked")
  private static BatchPartitioner ranks(FeedSpec spec, List<Integer> keys) {
    if (!spec.byKey()) {
      return (batch, lanes) -> {}; // They are all 0.
    }
    Seq<Attribute> columns =
        (Seq<Attribute>) (Seq<?>) DataTypeUtils$.MODULE$.toAttributes(spec.schema());
    List<Expression> hashed = keys.stream().map(key -> (Expression) columns.apply(key)).toList();
    return HashBatchPartitioner.create(
        new HashPartitioning(ScalaInterop.seq(hashed), spec.ranks()), columns);
  }
}
