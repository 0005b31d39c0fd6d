package org.apache.spark.sql.execution;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.execution.metric.SQLMetric;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * A stub of Spark's {@code WholeStageCodegenExec} for the compiler. {@code Exchange} explains the
 * reason.
 */
public class WholeStageCodegenExec extends SparkPlan implements UnaryExecNode {
  public WholeStageCodegenExec(SparkPlan child, int codegenStageId) {
    throw new AssertionError();
  }

  public int codegenStageId() {
    throw new AssertionError();
  }

  @Override
  public Map<String, SQLMetric> metrics() {
    throw new AssertionError();
  }

  @Override
  public SparkPlan child() {
    throw new AssertionError();
  }

  @Override
  public RDD<InternalRow> doExecute() {
    throw new AssertionError();
  }

  @Override
  public WholeStageCodegenExec withNewChildInternal(SparkPlan child) {
    throw new AssertionError();
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    throw new AssertionError();
  }

  @Override
  public SparkPlan mapChildren(Function1<SparkPlan, SparkPlan> function) {
    throw new AssertionError();
  }

  @Override
  public Seq<SparkPlan> children() {
    throw new AssertionError();
  }

  @Override
  public Seq<Attribute> output() {
    throw new AssertionError();
  }

  @Override
  public boolean canEqual(Object other) {
    throw new AssertionError();
  }

  @Override
  public boolean equals(Object other) {
    throw new AssertionError();
  }

  @Override
  public int hashCode() {
    throw new AssertionError();
  }

  @Override
  public int productArity() {
    throw new AssertionError();
  }

  @Override
  public Object productElement(int index) {
    throw new AssertionError();
  }
}
