package io.weft.spark.sql;

import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.RowToColumnarExec;
import org.apache.spark.sql.execution.SparkPlan;
import scala.runtime.AbstractPartialFunction;

/**
 * Takes out the conversion to batches that Spark puts between a row operator and our exchange: the
 * exchange takes rows as they are and builds its columns partition by partition.
 */
final class RowInputRule extends Rule<SparkPlan> {
  @Override
  public SparkPlan apply(SparkPlan plan) {
    return plan.transformUp(
        new AbstractPartialFunction<SparkPlan, SparkPlan>() {
          @Override
          public boolean isDefinedAt(SparkPlan node) {
            return node instanceof WeftShuffleExchangeExec exchange
                && exchange.child() instanceof RowToColumnarExec;
          }

          @Override
          public SparkPlan apply(SparkPlan node) {
            RowToColumnarExec conversion =
                (RowToColumnarExec) ((WeftShuffleExchangeExec) node).child();
            return node.withNewChildren(ScalaInterop.seq(conversion.child()));
          }
        });
  }
}
