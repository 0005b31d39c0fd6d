/**
 * The Weft tab of Spark's UI and of its history server. {@link io.weft.spark.ui.Activity} is what
 * the tab shows, {@link io.weft.spark.ui.WeftTab} attaches it to a running application, {@link
 * io.weft.spark.ui.WeftHistory} to an application of the history server.
 *
 * <p>Spark's request threads render pages from a thread-safe state of bounded size.
 */
package io.weft.spark.ui;
