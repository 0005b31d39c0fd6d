package io.weft.suites;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.DynamicNode;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/**
 * Spark's own suites with Weft, each of their tests as a test here. {@code -Dweft.suites} selects a
 * suite, {@code -Dweft.suites.test} tests by a part of their names.
 */
class SparkSuitesTest {
  @TestFactory
  Stream<DynamicNode> shuffleSuite() throws Exception {
    return run(Suite.SHUFFLE);
  }

  @TestFactory
  Stream<DynamicNode> shuffleSuiteOverStreams() throws Exception {
    return run(Suite.STREAMS);
  }

  @TestFactory
  Stream<DynamicNode> adaptiveQueryExecSuite() throws Exception {
    return run(Suite.ADAPTIVE);
  }

  @TestFactory
  Stream<DynamicNode> sqlSuites() throws Exception {
    return run(Suite.SQL);
  }

  @Test
  void everyExclusionIsDocumented() throws Exception {
    String page = Files.readString(Path.of(System.getProperty("weft.rootFolder"), DOCS));
    for (Suite suite : Suite.all()) {
      Exclusions.of(suite)
          .forEach(
              (test, reason) -> assertThat(page).contains("| %s | %s |".formatted(test, reason)));
    }
  }

  private static final String DOCS = "docs/spark-suites.md";

  private static Stream<DynamicNode> run(Suite suite) throws Exception {
    String wanted = System.getProperty("weft.suites", "");
    Assumptions.assumeTrue(
        wanted.isEmpty() || wanted.equals(suite.name()), "-Dweft.suites names another suite");
    String part = System.getProperty("weft.suites.test", "");
    List<SuiteReport.Outcome> outcomes = new SuiteRun(suite).run(part);
    Map<String, String> exclusions = Exclusions.of(suite);
    Stream<DynamicNode> tests =
        outcomes.stream()
            .map(
                outcome ->
                    DynamicTest.dynamicTest(
                        outcome.test(), () -> judge(outcome, exclusions.get(outcome.test()))));
    return part.isEmpty() ? Stream.concat(tests, Stream.of(complete(suite, outcomes))) : tests;
  }

  private static void judge(SuiteReport.Outcome outcome, String exclusion) {
    Assumptions.assumeFalse(outcome.ignored(), "Spark does not run it");
    if (exclusion == null) {
      assertThat(outcome.failure()).as("failure of Spark's test with Weft on").isEmpty();
      return;
    }
    assertThat(outcome.failure())
        .as("failure of a test that is excluded; it passes now: remove the exclusion")
        .isPresent();
    Assumptions.abort(exclusion);
  }

  private static DynamicNode complete(Suite suite, List<SuiteReport.Outcome> outcomes) {
    return DynamicTest.dynamicTest(
        "the suite is complete",
        () -> {
          assertThat(outcomes).hasSizeGreaterThanOrEqualTo(suite.leastTests());
          assertThat(outcomes)
              .extracting(SuiteReport.Outcome::test)
              .as("tests, among them those that are excluded")
              .containsAll(new TreeSet<>(Exclusions.of(suite).keySet()));
        });
  }
}
