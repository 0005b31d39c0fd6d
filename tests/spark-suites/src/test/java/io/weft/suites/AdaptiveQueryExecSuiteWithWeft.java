package io.weft.suites;

import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.spark.runtime.WeftExecutor;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.execution.adaptive.AdaptiveQueryExecSuite;

/**
 * Spark's {@code AdaptiveQueryExecSuite} with Weft. All its tests share one context. At its end
 * Weft must have carried shuffles; otherwise the suite would have tested something else.
 */
public class AdaptiveQueryExecSuiteWithWeft extends AdaptiveQueryExecSuite {
  @Override
  public SparkConf sparkConf() {
    return super.sparkConf().set("spark.plugins", "io.weft.spark.WeftPlugin");
  }

  @Override
  public void afterAll() {
    long outputs = WeftExecutor.exchange().statistics().get(ExchangeCounter.OUTPUTS_PUBLISHED);
    super.afterAll();
    System.out.println("Weft carried " + outputs + " map outputs of this suite");
    if (outputs == 0) {
      throw new IllegalStateException("Weft carried no shuffle of this suite");
    }
  }
}
