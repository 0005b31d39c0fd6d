package io.weft.spark.sql;

import io.weft.spark.columns.BatchRows;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import scala.runtime.AbstractPartialFunction;

/**
 * Puts our conversion to rows in the place of Spark's where it stands right above our exchange and
 * there are arrays of numbers to convert.
 *
 * <p>It also keeps our vectors away from the elements of flat arrays without nulls: compiled code
 * that has seen only Spark's vectors there reads those twice as fast.
 */
final class RowOutputRule extends Rule<SparkPlan> {
  @Override
  public SparkPlan apply(SparkPlan plan) {
    return plan.transformUp(
        new AbstractPartialFunction<SparkPlan, SparkPlan>() {
          @Override
          public boolean isDefinedAt(SparkPlan node) {
            return node.getClass() == ColumnarToRowExec.class
                && readsOurExchange(((ColumnarToRowExec) node).child())
                && BatchRows.pay(node.schema());
          }

          @Override
          public SparkPlan apply(SparkPlan node) {
            return new WeftColumnarToRowExec(((ColumnarToRowExec) node).child());
          }
        });
  }

  private static boolean readsOurExchange(SparkPlan node) {
    if (node instanceof AQEShuffleReadExec read) {
      return readsOurExchange(read.child());
    }
    if (node instanceof QueryStageExec stage) {
      return readsOurExchange(stage.plan());
    }
    if (node instanceof ReusedExchangeExec reused) {
      return readsOurExchange(reused.child());
    }
    return node instanceof WeftShuffleExchangeExec;
  }
}
