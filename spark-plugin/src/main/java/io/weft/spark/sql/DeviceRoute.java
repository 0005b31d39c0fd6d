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
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecutionRDD;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Decides on the driver whether the blocks of an exchange stay on GPUs. If an executor then has no
 * GPU, its map tasks write to its host. Finds the batches of queries that end on GPUs, for feeds.
 * Stateless.
 */
public final class DeviceRoute {
  private DeviceRoute() {}

  /**
   * Executes a query up to its last node, without Spark's conversion to rows, if batches of that
   * node are on GPUs. Stages of adaptive execution run during the call, once for each query.
   *
   * @return batches in place of rows; an executor without a GPU may have batches on its host. Empty
   *     if the query ends in rows, or in batches on hosts
   */
  @SuppressWarnings({"unchecked", "rawtypes"})
  public static Optional<RDD<InternalRow>> batches(QueryExecution query) {
    if (!endsOnDevices(query)) {
      return Optional.empty();
    }
    SparkPlan plan = query.executedPlan();
    SparkPlan last =
        withoutRows(plan instanceof AdaptiveSparkPlanExec root ? root.finalPhysicalPlan() : plan);
    return isGiven(last)
        ? Optional.of(
            new SQLExecutionRDD(
                (RDD) last.executeColumnar(), query.sparkSession().sessionState().conf()))
        : Optional.empty();
  }

  /**
   * Whether the batches of the last node of a query are on GPUs, as far as its plan is known before
   * it runs.
   */
  public static boolean endsOnDevices(QueryExecution query) {
    SparkPlan plan = query.executedPlan();
    return isGiven(
        withoutRows(plan instanceof AdaptiveSparkPlanExec root ? root.executedPlan() : plan));
  }

  /** Removes Spark's conversion to rows, and what it puts around it, from the top of a plan. */
  private static SparkPlan withoutRows(SparkPlan plan) {
    if (plan instanceof QueryStageExec stage && !(plan instanceof ShuffleQueryStageExec)) {
      return withoutRows(stage.plan());
    }
    return plan instanceof WholeStageCodegenExec
            || plan instanceof InputAdapter
            || plan instanceof ColumnarToRowExec
        ? withoutRows(plan.children().apply(0))
        : plan;
  }

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
