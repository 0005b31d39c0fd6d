package io.weft.spark.sql;

import io.weft.peer.PathRules;
import io.weft.peer.TransportMode;
import io.weft.spark.config.PathSettings;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.gpu.TableTypes;
import io.weft.spark.shuffle.WeftShuffleManager;
import io.weft.table.DevicePartitioner;
import java.util.Optional;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.types.StructType;

/**
 * Decides on the driver whether the blocks of an exchange stay on GPUs. If an executor then has no
 * GPU, its map tasks write to its host. Stateless.
 */
final class DeviceRoute {
  private DeviceRoute() {}

  /** Whether batches of a node are on GPUs, if executors have them. */
  static boolean isGiven(SparkPlan node) {
    if (node instanceof AQEShuffleReadExec read) {
      return isGiven(read.child());
    }
    if (node instanceof QueryStageExec stage) {
      return isGiven(stage.plan());
    }
    if (node instanceof ReusedExchangeExec reused) {
      return isGiven(reused.child());
    }
    return node instanceof GivesDeviceBatches
        || (node instanceof WeftShuffleExchangeExec exchange && exchange.isOnDevices());
  }

  /**
   * Returns why batches on GPUs are exchanged between hosts; empty if they are not.
   *
   * @param schema schema of the batches
   * @param partitions number of the exchange's partitions
   */
  static Optional<String> obstacle(StructType schema, int partitions) {
    SparkEnv environment = SparkEnv.get();
    if (environment == null) {
      return Optional.of("no application runs");
    }
    return obstacle(schema, partitions, environment.conf());
  }

  static Optional<String> obstacle(StructType schema, int partitions, SparkConf conf) {
    if (WeftSettings.TRANSPORT.get(conf) != TransportMode.AUTO) {
      return Optional.of(WeftSettings.TRANSPORT + " is not auto");
    }
    PathRules rules = PathSettings.rules(conf);
    if (rules.encrypted() && !rules.unencryptedNccl()) {
      return Optional.of(
          "Spark encrypts its network and NCCL does not, see "
              + WeftSettings.NCCL_ALLOW_UNENCRYPTED);
    }
    return partitions > DevicePartitioner.MOST_PARTITIONS
        ? Optional.of("a GPU splits into " + DevicePartitioner.MOST_PARTITIONS + " partitions")
        : TableTypes.obstacle(schema);
  }

  /** Logs a reason once, and counts it for the UI. */
  static void say(String reason) {
    if (SparkEnv.get().shuffleManager() instanceof WeftShuffleManager manager) {
      manager.hostExchanges().record(reason);
    }
  }
}
