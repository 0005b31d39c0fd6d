package io.weft.spark.sql;

import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleOrigin;
import scala.Option;

/**
 * Spark's own exchange, row by row, with a remark in the plan: the columns route was asked for or
 * possible, and the remark says why it was not taken.
 */
public final class RemarkedExchangeExec extends RoutedExchangeExec {
  /** Found by reflection: Spark copies plan nodes through their public constructor. */
  public RemarkedExchangeExec(
      Partitioning partitioning,
      SparkPlan child,
      ShuffleOrigin origin,
      Option<Object> advisoryPartitionSize,
      String reason) {
    super(partitioning, child, origin, advisoryPartitionSize, reason);
  }

  @Override
  public ShuffleExchangeExec copy(
      Partitioning partitioning,
      SparkPlan child,
      ShuffleOrigin origin,
      Option<Object> advisoryPartitionSize) {
    return new RemarkedExchangeExec(partitioning, child, origin, advisoryPartitionSize, reason());
  }

  @Override
  String remark() {
    return "weft: no columns route, " + reason();
  }
}
