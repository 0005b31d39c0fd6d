package io.weft.suites;

import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.DataFrameAggregateSuite;
import org.apache.spark.sql.DataFrameJoinSuite;
import org.apache.spark.sql.DataFrameSetOperationsSuite;
import org.apache.spark.sql.DataFrameWindowFunctionsSuite;
import org.apache.spark.sql.DatasetSuite;
import org.apache.spark.sql.SQLQueryTestSuite;
import org.apache.spark.sql.SparkSessionExtensionSuite;
import org.apache.spark.sql.SubquerySuite;
import org.apache.spark.sql.execution.CoalesceShufflePartitionsSuite;
import org.apache.spark.sql.execution.ExchangeSuite;
import org.apache.spark.sql.execution.ReuseExchangeAndSubquerySuite;
import org.apache.spark.sql.execution.SortSuite;
import org.apache.spark.sql.streaming.StreamingAggregationSuite;
import org.apache.spark.sql.streaming.StreamingDeduplicationSuite;

/**
 * Spark suites that run with Weft, in one JVM.
 *
 * @param name short, for the command line
 * @param runners the classes that ScalaTest runs
 * @param leastTests the least number of tests; a run with fewer does not pass
 */
record Suite(String name, List<Class<?>> runners, int leastTests) {
  static final Suite SHUFFLE = new Suite("shuffle", List.of(ShuffleSuiteWithWeft.class), 18);
  static final Suite STREAMS = new Suite("streams", List.of(ShuffleSuiteWithStreams.class), 18);
  static final Suite ADAPTIVE =
      new Suite("adaptive", List.of(AdaptiveQueryExecSuiteWithWeft.class), 90);

  /** Queries whose results Spark's developers know. The first suite proves that Weft is on. */
  static final Suite SQL =
      new Suite(
          "sql",
          List.of(
              JoinSuiteWithWeft.class,
              DataFrameAggregateSuite.class,
              DataFrameJoinSuite.class,
              DataFrameSetOperationsSuite.class,
              DataFrameWindowFunctionsSuite.class,
              DatasetSuite.class,
              SQLQueryTestSuite.class,
              SubquerySuite.class,
              SparkSessionExtensionSuite.class,
              CoalesceShufflePartitionsSuite.class,
              ExchangeSuite.class,
              ReuseExchangeAndSubquerySuite.class,
              SortSuite.class,
              StreamingAggregationSuite.class,
              StreamingDeduplicationSuite.class),
          900);

  /** All of them. */
  static List<Suite> all() {
    return List.of(SHUFFLE, STREAMS, ADAPTIVE, SQL);
  }

  /** The system properties of the JVM, for suites that do not switch on Weft themselves. */
  List<String> properties() {
    return this == SQL
        ? List.of("-Dspark.plugins=io.weft.spark.WeftPlugin", "-Dspark.testing=true")
        : List.of();
  }

  /**
   * ScalaTest's arguments: each class with the part of the names of its tests.
   *
   * @param part empty for all tests
   */
  List<String> arguments(String part) {
    List<String> tests = part.isEmpty() ? List.of() : List.of("-z", part);
    return runners.stream()
        .flatMap(runner -> Stream.concat(Stream.of("-s", runner.getName()), tests.stream()))
        .toList();
  }
}
