package io.weft.spark.sql;

import io.weft.spark.compat.ScalaInterop;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.shuffle.WeftShuffleManager;
import io.weft.spark.sql.DeviceRoute.DeviceBatchSource;
import io.weft.spark.sql.RowsExchangeExec.FasterPartitioning;
import io.weft.spark.sql.WeftColumnarToRowExec.RowOutputRule;
import java.util.Optional;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.RowToColumnarExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * Adds Weft's rules to every session. The plugin appends this class to {@code
 * spark.sql.extensions}.
 */
public final class WeftSessionExtensions
    extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  /** The constructor Spark calls. */
  public WeftSessionExtensions() {}

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectQueryStagePrepRule(session -> WeftExchangeRule.beforeStages());
    extensions.injectColumnar(session -> new ExchangeColumnarRule());
    extensions.injectPlannerStrategy(session -> new DeviceStrategy());
    GpuTableFunctions.inject(extensions);
    return BoxedUnit.UNIT;
  }

  /** Adapts exchanges and both their sides after Spark has inserted its conversions. */
  private static final class ExchangeEdges extends Rule<SparkPlan> {
    private final RowInputRule input = new RowInputRule();
    private final RowOutputRule output = new RowOutputRule();
    private final FasterPartitioning partitioning = new FasterPartitioning();

    @Override
    public SparkPlan apply(SparkPlan plan) {
      return partitioning.apply(output.apply(input.apply(plan)));
    }
  }

  /** Weft's rules before and after Spark inserts conversions between rows and batches. */
  private static final class ExchangeColumnarRule extends ColumnarRule {
    @Override
    public Rule<SparkPlan> preColumnarTransitions() {
      return WeftExchangeRule.beforeTransitions();
    }

    @Override
    public Rule<SparkPlan> postColumnarTransitions() {
      return new ExchangeEdges();
    }
  }

  /**
   * Removes Spark's conversion to batches between a row operator and a Weft node that accepts rows.
   * Weft's exchange builds columns partition by partition. Weft's nodes for GPUs also support
   * strings that the conversion does not.
   */
  static final class RowInputRule extends Rule<SparkPlan> {
    @Override
    public SparkPlan apply(SparkPlan plan) {
      return plan.transformUp(
          new AbstractPartialFunction<SparkPlan, SparkPlan>() {
            @Override
            public boolean isDefinedAt(SparkPlan node) {
              return takesRows(node) && node.children().apply(0) instanceof RowToColumnarExec;
            }

            @Override
            public SparkPlan apply(SparkPlan node) {
              RowToColumnarExec conversion = (RowToColumnarExec) node.children().apply(0);
              return node.withNewChildren(ScalaInterop.seq(conversion.child()));
            }
          });
    }

    private static boolean takesRows(SparkPlan node) {
      return node instanceof WeftShuffleExchangeExec || node instanceof DeviceBatchSource;
    }
  }

  /**
   * Plans the nodes that {@link WeftGpu} adds to a query. Rows stay on the host if they cannot be
   * tables, or if Weft does not exchange them.
   */
  static final class DeviceStrategy extends SparkStrategy {
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
      obstacle.ifPresent(plan::logReason);
      return obstacle.isEmpty();
    }
  }
}
