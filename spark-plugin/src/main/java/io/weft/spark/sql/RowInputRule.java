package io.weft.spark.sql;

import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.RowToColumnarExec;
import org.apache.spark.sql.execution.SparkPlan;
import scala.runtime.AbstractPartialFunction;

/**
 * Removes Spark's conversion to batches between a row operator and a Weft node that accepts rows.
 * Weft's exchange builds columns partition by partition. Weft's nodes for GPUs also support strings
 * that the conversion does not.
 */
final class RowInputRule extends Rule<SparkPlan> {
  @Override
  public SparkPlan apply(SparkPlan plan) {
    return plan.transformUp(
        new AbstractPartialFunction<SparkPlan, SparkPlan>() {
          @Override
          public boolean isDefinedAt(SparkPlan node) {
            return takesRows(node) && node.children().apply(0) instanceof RowToColumnarExec;
          }

          @Override
          public SparkPlan apply(SparkPlan node) {
            RowToColumnarExec conversion = (RowToColumnarExec) node.children().apply(0);
            return node.withNewChildren(ScalaInterop.seq(conversion.child()));
          }
        });
  }

  private static boolean takesRows(SparkPlan node) {
    return node instanceof WeftShuffleExchangeExec || node instanceof GivesDeviceBatches;
  }
}
