package io.weft.spark.sql;

import io.weft.shuffle.device.DevicePartitioner;
import io.weft.shuffle.peer.PathRules;
import io.weft.shuffle.peer.TransportMode;
import io.weft.spark.config.PathSettings;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.gpu.TableTypes;
import io.weft.spark.shuffle.WeftShuffleManager;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

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
    return node instanceof DeviceBatchSource
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
    return partitions > DevicePartitioner.MAX_PARTITIONS
        ? Optional.of("a GPU splits into " + DevicePartitioner.MAX_PARTITIONS + " partitions")
        : TableTypes.obstacle(schema);
  }

  /** Logs a reason once, and counts it for the UI. */
  static void logReason(String reason) {
    if (SparkEnv.get().shuffleManager() instanceof WeftShuffleManager manager) {
      manager.hostExchanges().record(reason);
    }
  }

  /**
   * A plan node whose batches are on the GPU of its executor, if the executor has one: see {@link
   * io.weft.spark.gpu.DeviceBatch}.
   */
  interface DeviceBatchSource {}

  /** The GPU of the executor that runs a task, if it is usable. Thread-safe. */
  static final class TaskDevice {
    private static final Logger LOG = LoggerFactory.getLogger(TaskDevice.class);
    private static final AtomicReference<String> LOGGED = new AtomicReference<>("");

    private TaskDevice() {}

    /**
     * Opens the GPU on the first call and waits until the task is admitted. Returns empty if there
     * is no usable GPU, and logs the reason once.
     */
    static Optional<DeviceExchange> find() {
      ExecutorGpu gpu = ExecutorGpu.current();
      String obstacle = gpu.exchangeObstacle();
      if (obstacle.isEmpty()) {
        DeviceExchange device = gpu.exchange();
        TaskContext context = TaskContext.get();
        if (context != null) {
          device.admit(context);
        }
        return Optional.of(device);
      }
      if (!LOGGED.getAndSet(obstacle).equals(obstacle)) {
        LOG.info("Batches for GPUs stay on the host: {}", obstacle);
      }
      return Optional.empty();
    }
  }
}
