/**
 * What executors measure: one list, from which the metric registry, the UI and {@code
 * docs/metrics.md} are made.
 *
 * <p>Immutable values; no threads, nothing to free.
 */
package io.weft.spark.metrics;
