package io.weft.spark.sql;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.RowToColumnarExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Converts a node's output to batches on the host. Spark's conversion does not support strings with
 * a collation, although their bytes have the same format. This class declares them as plain
 * strings. Stateless.
 */
final class RowBatches {
  private RowBatches() {}

  /** Returns the node's batches, or converts its rows to batches. */
  static RDD<ColumnarBatch> of(SparkPlan node) {
    return node.supportsColumnar()
        ? node.executeColumnar()
        : new RowToColumnarExec(new PlainStringsExec(node)).executeColumnar();
  }
}
