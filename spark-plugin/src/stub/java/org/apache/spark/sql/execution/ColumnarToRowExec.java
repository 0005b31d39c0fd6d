package org.apache.spark.sql.execution;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * A stub of Spark's {@code ColumnarToRowExec} for the compiler. {@code Exchange} explains the
 * reason.
 */
public class ColumnarToRowExec extends SparkPlan implements UnaryExecNode {
  public ColumnarToRowExec(SparkPlan child) {
    throw new AssertionError();
  }

  public boolean supportCodegen() {
    throw new AssertionError();
  }

  public ColumnarToRowExec copy(SparkPlan child) {
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
  public ColumnarToRowExec withNewChildInternal(SparkPlan child) {
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
