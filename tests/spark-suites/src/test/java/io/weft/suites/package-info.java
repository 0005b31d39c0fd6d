/**
 * Spark's own suites as a judge: they run in a JVM of their own under ScalaTest, with Weft on, and
 * a JUnit test reads ScalaTest's report. What is excluded, and why, is in {@code Exclusions} and in
 * {@code docs/spark-suites.md}.
 *
 * <p>One thread; the child JVM ends with the test that started it.
 */
package io.weft.suites;
