package io.weft.suites;

import org.apache.spark.ShuffleSuite;

/**
 * Spark's {@code ShuffleSuite} with Weft on. The suite is abstract and takes its settings from
 * nowhere but its own {@code conf}.
 */
public class ShuffleSuiteWithWeft extends ShuffleSuite {
  @Override
  public void beforeAll() {
    super.beforeAll();
    conf().set("spark.plugins", "io.weft.spark.WeftPlugin");
  }
}
