/**
 * The driver side while an application runs. {@link io.weft.spark.driver.DriverState} has the
 * addresses of executors and what the Weft tab shows, {@link io.weft.spark.driver.DriverAnswers}
 * answers their messages, and {@link io.weft.spark.driver.ActivityRecorder} fills the tab and
 * Spark's event log.
 *
 * <p>Messages are answered on Spark's one thread for plugins, without blocking. Spark's listener
 * thread reports stages and ended executors. The driver plugin owns and stops the thread of the
 * garbage collector.
 */
package io.weft.spark.driver;
