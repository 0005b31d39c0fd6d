package io.weft.spark.sql;

import io.weft.spark.columns.BatchRows;
import io.weft.spark.compat.NarrowRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Converts batches to rows like Spark, but copies values straight from chunks into rows: see {@link
 * BatchRows}. It is not part of generated code.
 */
public final class WeftColumnarToRowExec extends ColumnarToRowExec {
  /** Spark calls this constructor by reflection to copy the node. */
  public WeftColumnarToRowExec(SparkPlan child) {
    super(child);
  }

  @Override
  public String nodeName() {
    return "WeftColumnarToRow";
  }

  @Override
  public boolean supportCodegen() {
    return false;
  }

  @Override
  public RDD<InternalRow> doExecute() {
    return rows(
        child().executeColumnar(),
        child().schema(),
        longMetric("numInputBatches"),
        longMetric("numOutputRows"));
  }

  /** Static, so that the plan is not serialized with the tasks. */
  private static RDD<InternalRow> rows(
      RDD<ColumnarBatch> input, StructType schema, SQLMetric batches, SQLMetric rows) {
    return NarrowRDD.over(
        input,
        InternalRow.class,
        elements -> {
          BatchRows conversion = new BatchRows(schema);
          return elements.flatMap(
              batch -> {
                batches.add(1);
                rows.add(batch.numRows());
                return CollectionConverters.asScala(conversion.of(batch));
              });
        });
  }

  @Override
  public ColumnarToRowExec copy(SparkPlan child) {
    return new WeftColumnarToRowExec(child);
  }

  @Override
  public ColumnarToRowExec withNewChildInternal(SparkPlan child) {
    return copy(child);
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof WeftColumnarToRowExec;
  }

  @Override
  public boolean equals(Object other) {
    return canEqual(other) && super.equals(other);
  }

  @Override
  public int hashCode() {
    return super.hashCode();
  }

  /**
   * Replaces Spark's conversion to rows by Weft's, directly above Weft's exchange and if it pays:
   * see {@link BatchRows#speedsUp}.
   *
   * <p>This also keeps Weft's vectors out of Spark's code that reads elements of flat arrays
   * without nulls. JIT-compiled code that has seen only Spark's vectors there is twice as fast.
   */
  static final class RowOutputRule extends Rule<SparkPlan> {
    @Override
    public SparkPlan apply(SparkPlan plan) {
      return plan.transformUp(
          new AbstractPartialFunction<SparkPlan, SparkPlan>() {
            @Override
            public boolean isDefinedAt(SparkPlan node) {
              return node.getClass() == ColumnarToRowExec.class
                  && readsOurExchange(((ColumnarToRowExec) node).child())
                  && BatchRows.speedsUp(node.schema());
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
}
