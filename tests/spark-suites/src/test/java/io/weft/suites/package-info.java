/**
 * Runs Spark's own test suites with Weft enabled, under ScalaTest in a separate JVM. A JUnit test
 * reads ScalaTest's report. {@code Exclusions} and {@code docs/spark-suites.md} list the exclusions
 * with their reasons.
 *
 * <p>One thread; the child JVM ends with the test that started it.
 */
package io.weft.suites;
