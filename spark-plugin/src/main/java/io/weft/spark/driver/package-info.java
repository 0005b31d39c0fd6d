/**
 * The driver side while an application runs, and the Weft tab of the Spark UI. {@link
 * io.weft.spark.driver.DriverState} has the addresses and last reports of executors, {@link
 * io.weft.spark.driver.DriverAnswers} answers their messages, and {@link
 * io.weft.spark.driver.WeftTab} shows both in the UI.
 *
 * <p>Messages are answered on Spark's one thread for plugins, without blocking. Spark's listener
 * thread reports ended executors. The UI's request threads render the tab. The driver plugin owns
 * and stops the thread of the garbage collector.
 */
package io.weft.spark.driver;
