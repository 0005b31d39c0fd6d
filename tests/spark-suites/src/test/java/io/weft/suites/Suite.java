package io.weft.suites;

/**
 * A Spark suite that runs with Weft.
 *
 * @param name short, for the command line
 * @param runner the class that ScalaTest runs
 * @param leastTests the least number of tests; a run with fewer does not pass
 */
record Suite(String name, Class<?> runner, int leastTests) {
  static final Suite SHUFFLE = new Suite("shuffle", ShuffleSuiteWithWeft.class, 18);
  static final Suite STREAMS = new Suite("streams", ShuffleSuiteWithStreams.class, 18);
  static final Suite ADAPTIVE = new Suite("adaptive", AdaptiveQueryExecSuiteWithWeft.class, 90);
}
