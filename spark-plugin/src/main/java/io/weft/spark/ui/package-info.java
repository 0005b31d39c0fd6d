/**
 * The Weft tab of the Spark UI: whether Weft is on, what every executor holds and moved, and what
 * was left to Spark.
 *
 * <p>Rendered on the UI's request threads from {@code DriverState}; nothing to free.
 */
package io.weft.spark.ui;
