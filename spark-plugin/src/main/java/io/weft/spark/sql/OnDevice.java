package io.weft.spark.sql;

import io.weft.spark.compat.ScalaInterop;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/** Logical node that requests its child's rows on GPUs. Immutable. */
public final class OnDevice extends LogicalPlan {
  private final LogicalPlan child;
  private final AtomicBoolean logged;

  /** Spark calls this constructor by reflection to copy the node. */
  public OnDevice(LogicalPlan child, AtomicBoolean logged) {
    this.child = child;
    this.logged = logged;
  }

  /** Creates the node for a user's request. */
  static OnDevice of(LogicalPlan child) {
    return new OnDevice(child, new AtomicBoolean());
  }

  /** Logs once why rows stay on the host, even if the node is planned several times. */
  void logReason(String reason) {
    if (logged.compareAndSet(false, true)) {
      DeviceRoute.logReason(reason);
    }
  }

  /** Spark's reflective copies pass this as the last constructor argument. */
  @Override
  public Seq<Object> otherCopyArgs() {
    return ScalaInterop.seq((Object) logged);
  }

  LogicalPlan child() {
    return child;
  }

  @Override
  public Seq<Attribute> output() {
    return child.output();
  }

  @Override
  public Seq<LogicalPlan> children() {
    return ScalaInterop.seq(child);
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return new OnDevice(children.apply(0), logged);
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int index) {
    return child;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof OnDevice;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof OnDevice same && same.child.equals(child);
  }

  @Override
  public int hashCode() {
    return super.hashCode();
  }
}
