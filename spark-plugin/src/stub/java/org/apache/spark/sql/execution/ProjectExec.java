package org.apache.spark.sql.execution;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/** A stub of Spark's {@code ProjectExec} for the compiler. {@code Exchange} explains the reason. */
public class ProjectExec extends SparkPlan implements UnaryExecNode {
  public ProjectExec(Seq<NamedExpression> projectList, SparkPlan child) {
    throw new AssertionError();
  }

  public Seq<NamedExpression> projectList() {
    throw new AssertionError();
  }

  public AttributeSet usedInputs() {
    throw new AssertionError();
  }

  public String doConsume(CodegenContext context, Seq<ExprCode> input, ExprCode row) {
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
  public ProjectExec withNewChildInternal(SparkPlan child) {
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
