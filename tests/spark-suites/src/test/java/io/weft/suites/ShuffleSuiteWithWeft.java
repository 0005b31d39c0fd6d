package io.weft.suites;

import org.apache.spark.ShuffleSuite;

/**
 * Spark's {@code ShuffleSuite} with Weft. The suite is abstract and reads its settings only from
 * its own {@code conf}.
 */
public class ShuffleSuiteWithWeft extends ShuffleSuite {
  @Override
  public void beforeAll() {
    super.beforeAll();
    conf().set("spark.plugins", "io.weft.spark.WeftPlugin");
  }
}
