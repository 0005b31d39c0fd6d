package io.weft.spark.sql;

import io.weft.spark.columns.ColumnarSchema;
import io.weft.spark.compat.SparkFeatures;
import io.weft.spark.config.Route;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.shuffle.WeftShuffleManager;
import io.weft.spark.sql.DeviceRoute.DeviceBatchSource;
import io.weft.spark.sql.WeftExchangeRule.RoutePolicy.RouteChoice;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning;
import org.apache.spark.sql.catalyst.plans.physical.RoundRobinPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * Replaces Spark's exchange by a {@link WeftShuffleExchangeExec} wherever the columns route is
 * chosen.
 *
 * <p>The rule has two variants. With adaptive execution, it runs before the plan is split into
 * stages, because a stage is created either for rows or for batches. Without it, the rule runs
 * before Spark inserts conversions between rows and batches. Adaptive execution also runs the
 * second variant for each stage. The choice has been made by then, and exchanges that stayed
 * unchanged have a tag.
 */
final class WeftExchangeRule extends Rule<SparkPlan> {
  private static final TreeNodeTag<String> LEFT_TO_SPARK = new TreeNodeTag<>("weft.leftToSpark");
  private static final TreeNodeTag<String> READ_BY_GPU = new TreeNodeTag<>("weft.readByGpu");
  private static final String WEFT_IS_OFF = "Weft is off";

  private final boolean beforeStages;

  private WeftExchangeRule(boolean beforeStages) {
    this.beforeStages = beforeStages;
  }

  /** Creates the rule for adaptive execution, which runs before it creates stages. */
  static WeftExchangeRule beforeStages() {
    return new WeftExchangeRule(true);
  }

  /**
   * Creates the rule for plans without adaptive execution, which runs before conversions are
   * inserted.
   */
  static WeftExchangeRule beforeTransitions() {
    return new WeftExchangeRule(false);
  }

  /** Whether the rule has seen this exchange while Weft was on, and gave it the rows route. */
  static boolean gaveRows(SparkPlan node) {
    return node instanceof RemarkedExchangeExec
        || (node.getClass() == ShuffleExchangeExec.class
            && node.getTagValue(LEFT_TO_SPARK).exists(reason -> !reason.equals(WEFT_IS_OFF)));
  }

  @Override
  public SparkPlan apply(SparkPlan plan) {
    Optional<Route> setting = setting(plan);
    markReadByGpus(plan);
    return plan.transformUp(
        new AbstractPartialFunction<SparkPlan, SparkPlan>() {
          @Override
          public boolean isDefinedAt(SparkPlan node) {
            return node.getClass() == ShuffleExchangeExec.class
                && (beforeStages || node.getTagValue(LEFT_TO_SPARK).isEmpty());
          }

          @Override
          public SparkPlan apply(SparkPlan node) {
            return routed((ShuffleExchangeExec) node, setting);
          }
        });
  }

  /** Marks what a node reads that copies batches to GPUs. It would have to transpose rows. */
  private static void markReadByGpus(SparkPlan plan) {
    plan.foreach(
        node -> {
          if (node instanceof DeviceBatchSource) {
            CollectionConverters.asJava(node.children())
                .forEach(child -> child.setTagValue(READ_BY_GPU, ""));
          }
          return BoxedUnit.UNIT;
        });
  }

  /** Returns the session's route; empty if Weft is off, which changes no plan. */
  private static Optional<Route> setting(SparkPlan plan) {
    SparkEnv environment = SparkEnv.get();
    boolean ours =
        environment != null
            && environment.shuffleManager() instanceof WeftShuffleManager manager
            && manager.failures().refusal().isEmpty();
    return ours && WeftSettings.ENABLED.get(plan.conf())
        ? Optional.of(WeftSettings.ROUTE.get(plan.conf()))
        : Optional.empty();
  }

  private SparkPlan routed(ShuffleExchangeExec exchange, Optional<Route> setting) {
    if (setting.isEmpty()) {
      return left(exchange, WEFT_IS_OFF);
    }
    RouteChoice choice = RoutePolicy.choose(exchange, setting.get());
    if (choice.columns()) {
      return replacement(exchange, choice);
    }
    if (choice.shown()) {
      RefusalLog.say(choice.reason());
      return remarked(exchange, choice);
    }
    return left(exchange, choice.reason());
  }

  private static SparkPlan left(ShuffleExchangeExec exchange, String reason) {
    exchange.setTagValue(LEFT_TO_SPARK, reason);
    return exchange;
  }

  private static SparkPlan replacement(ShuffleExchangeExec exchange, RouteChoice choice) {
    return new WeftShuffleExchangeExec(
        exchange.outputPartitioning(),
        exchange.child(),
        exchange.shuffleOrigin(),
        exchange.advisoryPartitionSize(),
        choice.reason());
  }

  private static SparkPlan remarked(ShuffleExchangeExec exchange, RouteChoice choice) {
    return new RemarkedExchangeExec(
        exchange.outputPartitioning(),
        exchange.child(),
        exchange.shuffleOrigin(),
        exchange.advisoryPartitionSize(),
        choice.reason());
  }

  /** Logs why exchanges do not take the columns route, once per reason and JVM. Thread-safe. */
  static final class RefusalLog {
    private static final Logger LOG = LoggerFactory.getLogger(RefusalLog.class);

    /** Maximum number of logged reasons. Reasons name types, whose number is unlimited. */
    private static final int MAX_REASONS = 1000;

    private static final Set<String> SAID = ConcurrentHashMap.newKeySet();

    private RefusalLog() {}

    static void say(String reason) {
      if (SAID.size() < MAX_REASONS && SAID.add(reason)) {
        LOG.info("An exchange takes the rows route: {}", reason);
      }
    }
  }

  /** Chooses the route of an exchange, with a reason. */
  static final class RoutePolicy {
    private RoutePolicy() {}

    /**
     * Chooses between the columns route and leaving the exchange as Spark planned it.
     *
     * @param exchange Spark's node
     * @param setting the session's setting
     */
    static RouteChoice choose(ShuffleExchangeExec exchange, Route setting) {
      if (setting == Route.ROWS) {
        return RouteChoice.rows("spark.weft.route=rows");
      }
      if (setting == Route.AUTO && !exchange.child().supportsColumnar()) {
        return RouteChoice.rows("its input is rows");
      }
      Optional<String> obstacle = obstacle(exchange);
      if (obstacle.isPresent()) {
        return RouteChoice.refused(obstacle.get());
      }
      return setting == Route.COLUMNS
          ? RouteChoice.columns("spark.weft.route=columns")
          : automatic(exchange);
    }

    /** Returns why the columns route does not support this exchange; empty if it does. */
    private static Optional<String> obstacle(ShuffleExchangeExec exchange) {
      Partitioning partitioning = exchange.outputPartitioning();
      if (!known(partitioning)) {
        return Optional.of("partitioning " + partitioning.getClass().getSimpleName());
      }
      return ColumnarSchema.unsupportedReason(exchange.schema());
    }

    private static boolean known(Partitioning partitioning) {
      return partitioning instanceof HashPartitioning
          || partitioning instanceof RangePartitioning
          || partitioning instanceof RoundRobinPartitioning
          || partitioning == SinglePartition$.MODULE$;
    }

    /** Chooses for input in batches that both routes support. */
    private static RouteChoice automatic(ShuffleExchangeExec exchange) {
      if (DeviceRoute.isGiven(exchange.child())
          && SparkFeatures.rowChecksums(exchange.conf()).isComputed()) {
        return RouteChoice.refused(
            "its input is on GPUs and row checksums are on (" + SparkFeatures.ROW_CHECKSUMS + "*)");
      }
      if (exchange.getTagValue(READ_BY_GPU).isEmpty() && DirectStage.suits(exchange)) {
        return RouteChoice.refused("its numbers are faster as rows");
      }
      return DependencyBuilder.rowsObstacle(exchange.outputPartitioning(), exchange.conf())
          .map(RouteChoice::refused)
          .orElseGet(() -> RouteChoice.columns("its input is batches"));
    }

    /**
     * The route of one exchange and its reason.
     *
     * @param columns whether the exchange becomes a {@link WeftShuffleExchangeExec}
     * @param reason reason as a clause, for the plan and the log
     * @param shown whether the plan shows the reason: always for the columns route, for rows only
     *     if the user could expect columns
     */
    record RouteChoice(boolean columns, String reason, boolean shown) {
      static RouteChoice columns(String reason) {
        return new RouteChoice(true, reason, true);
      }

      /** Keeps Spark's node although columns were requested or possible. */
      static RouteChoice refused(String reason) {
        return new RouteChoice(false, reason, true);
      }

      /** Keeps Spark's node as expected. */
      static RouteChoice rows(String reason) {
        return new RouteChoice(false, reason, false);
      }
    }
  }
}
