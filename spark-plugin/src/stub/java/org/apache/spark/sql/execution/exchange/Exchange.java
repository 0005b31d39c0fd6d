package org.apache.spark.sql.execution.exchange;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.UnaryExecNode;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * What the compiler sees in place of Spark's abstract {@code Exchange}: Scala's mixin forwarders in
 * the real class return {@code TreeNode} where Java expects {@code SparkPlan}, and javac refuses
 * every subclass for that. Read from the source path only, never written as a class file: at run
 * time the real class is used.
 */
public abstract class Exchange extends SparkPlan implements UnaryExecNode {
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
}
