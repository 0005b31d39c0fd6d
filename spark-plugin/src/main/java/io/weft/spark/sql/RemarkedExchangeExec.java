package io.weft.spark.sql;

import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleOrigin;
import scala.Option;

/**
 * Spark's own exchange of rows, with a remark in the plan. The remark says why the columns route
 * was not taken although it was requested or possible.
 */
public final class RemarkedExchangeExec extends RoutedExchangeExec {
  /** Spark calls this constructor by reflection to copy the node. */
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
