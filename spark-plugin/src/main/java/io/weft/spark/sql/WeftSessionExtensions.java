package io.weft.spark.sql;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import scala.runtime.AbstractFunction1;
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
    return BoxedUnit.UNIT;
  }

  /** Adapts both sides of an exchange after Spark has inserted its conversions. */
  private static final class ExchangeEdges extends Rule<SparkPlan> {
    private final RowInputRule input = new RowInputRule();
    private final RowOutputRule output = new RowOutputRule();

    @Override
    public SparkPlan apply(SparkPlan plan) {
      return output.apply(input.apply(plan));
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
}
