package io.weft.spark.sql;

import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleOrigin;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * A shuffle exchange that knows why it takes the route it takes, and shows it in the plan.
 *
 * <p>Two of them are equal only if they are of the same class: an exchange that were equal to the
 * Spark node it replaces would be dropped by every tree transformation as "no change".
 */
abstract class RoutedExchangeExec extends ShuffleExchangeExec {
  private final String reason;

  RoutedExchangeExec(
      Partitioning partitioning,
      SparkPlan child,
      ShuffleOrigin origin,
      Option<Object> advisoryPartitionSize,
      String reason) {
    super(partitioning, child, origin, advisoryPartitionSize);
    this.reason = reason;
  }

  /** Why this exchange takes its route: one clause. */
  final String reason() {
    return reason;
  }

  /** What the plan says about this exchange beside Spark's own words. */
  abstract String remark();

  @Override
  public abstract ShuffleExchangeExec copy(
      Partitioning partitioning,
      SparkPlan child,
      ShuffleOrigin origin,
      Option<Object> advisoryPartitionSize);

  @Override
  public final ShuffleExchangeExec withNewChildInternal(SparkPlan child) {
    return copy(outputPartitioning(), child, shuffleOrigin(), advisoryPartitionSize());
  }

  /** Makes Spark's reflective copies pass the reason on as the last constructor argument. */
  @Override
  public final Seq<Object> otherCopyArgs() {
    return ScalaInterop.seq((Object) reason);
  }

  @Override
  public final Iterator<Object> stringArgs() {
    return super.stringArgs()
        .concat(() -> ScalaInterop.seq((Object) ("[" + remark() + "]")).iterator());
  }

  @Override
  public final boolean canEqual(Object other) {
    return other != null && other.getClass() == getClass();
  }

  @Override
  public final boolean equals(Object other) {
    return canEqual(other) && super.equals(other);
  }

  @Override
  public final int hashCode() {
    return super.hashCode();
  }
}
