/**
 * The tables and queries that system tests run, and the exact text of their results. This package
 * and {@link io.weft.tests.application} travel to clusters in a jar of their own, so they use
 * nothing but Spark and the JDK.
 */
package io.weft.tests.workload;
