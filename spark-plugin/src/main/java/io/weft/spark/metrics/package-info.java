/**
 * The metrics of executors: one list, from which the metric registry, the UI and {@code
 * docs/metrics.md} are generated.
 *
 * <p>Immutable values; no threads, nothing to free.
 */
package io.weft.spark.metrics;
