/**
 * The tables and queries that system tests run, and the exact text of their results. This package
 * and {@link io.weft.tests.application} are sent to clusters in a separate jar, so they use only
 * Spark and the JDK.
 */
package io.weft.tests.workload;
