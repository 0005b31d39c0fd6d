package io.weft.suites;

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
    try {
      JoinSuiteWithWeft.requireMapOutputs();
    } finally {
      super.afterAll();
    }
  }
}
