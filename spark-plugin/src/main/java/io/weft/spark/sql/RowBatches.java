package io.weft.spark.sql;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.RowToColumnarExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Batches on the host of what a node gives. Spark's conversion of rows takes no strings with a
 * collation, though these are the same bytes as others: it is told of plain ones. Stateless.
 */
final class RowBatches {
  private RowBatches() {}

  /** The node's batches where it gives batches, else its rows as batches. */
  static RDD<ColumnarBatch> of(SparkPlan node) {
    return node.supportsColumnar()
        ? node.executeColumnar()
        : new RowToColumnarExec(new PlainStringsExec(node)).executeColumnar();
  }
}
