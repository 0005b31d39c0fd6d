package org.apache.spark.sql.execution.exchange;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.UnaryExecNode;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * A stub of Spark's abstract {@code Exchange} for the compiler. In the real class, Scala's mixin
 * forwarders return {@code TreeNode} where Java expects {@code SparkPlan}, so javac rejects every
 * subclass. The stub is on the source path only and never compiled to a class file. At run time the
 * real class is used.
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
