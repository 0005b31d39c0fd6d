package io.weft.suites;

/**
 * A suite of Spark's that runs with Weft on.
 *
 * @param name short, for the command line
 * @param runner the class that ScalaTest runs
 * @param leastTests how many tests it has at least, lest an empty run passes
 */
record Suite(String name, Class<?> runner, int leastTests) {
  static final Suite SHUFFLE = new Suite("shuffle", ShuffleSuiteWithWeft.class, 18);
  static final Suite ADAPTIVE = new Suite("adaptive", AdaptiveQueryExecSuiteWithWeft.class, 90);
}
