package io.weft.suites;

/** Spark's {@code ShuffleSuite} with Weft carrying its shuffles, on the streams route. */
public class ShuffleSuiteWithStreams extends ShuffleSuiteWithWeft {
  @Override
  public void beforeAll() {
    super.beforeAll();
    conf().set("spark.weft.rdd.streams", "true");
  }
}
