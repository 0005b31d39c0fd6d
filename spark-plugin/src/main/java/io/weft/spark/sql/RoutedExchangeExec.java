package io.weft.spark.sql;

import io.weft.spark.compat.ScalaInterop;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleOrigin;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * A shuffle exchange that shows the reason of its route in the plan.
 *
 * <p>Two exchanges are equal only if they are of the same class. If an exchange were equal to the
 * Spark node that it replaces, tree transformations would discard it as "no change".
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

  /** The reason of the route, as a clause. */
  final String reason() {
    return reason;
  }

  /** Text for this exchange in the plan, in addition to Spark's text. */
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

  /** Spark's reflective copies pass the reason as the last constructor argument. */
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
