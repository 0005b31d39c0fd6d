/**
 * The Weft tab of the Spark UI. It shows whether Weft is on, the memory and traffic of every
 * executor, and the shuffles left to Spark.
 *
 * <p>The UI's request threads render it from {@code DriverState}.
 */
package io.weft.spark.ui;
