package io.weft.spark.sql;

import io.weft.spark.config.WeftSettings;
import io.weft.spark.shuffle.WeftShuffleManager;
import java.util.Optional;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.collection.immutable.Seq;

/**
 * Plans the nodes that {@link WeftGpu} adds to a query. Rows stay on the host if they cannot be
 * tables, or if Weft does not exchange them.
 */
final class DeviceStrategy extends SparkStrategy {
  @Override
  public Seq<SparkPlan> apply(LogicalPlan plan) {
    if (plan instanceof MapOnDevice map) {
      return ScalaInterop.seq(
          new DeviceMapExec(map.output(), map.tables(), planLater(map.child())));
    }
    if (!(plan instanceof OnDevice onDevice)) {
      return ScalaInterop.seq();
    }
    SparkPlan child = planLater(onDevice.child());
    return ScalaInterop.seq(isUploaded(onDevice) ? new DeviceUploadExec(child) : child);
  }

  private static boolean isUploaded(OnDevice plan) {
    SparkEnv environment = SparkEnv.get();
    boolean ours =
        environment != null && environment.shuffleManager() instanceof WeftShuffleManager;
    if (!ours || !WeftSettings.ENABLED.get(plan.conf())) {
      return false;
    }
    if (plan.schema().isEmpty()) {
      return false; // Rows without columns are only counted, so there is nothing to exchange.
    }
    Optional<String> obstacle = DeviceRoute.obstacle(plan.schema(), 1);
    obstacle.ifPresent(plan::say);
    return obstacle.isEmpty();
  }
}
