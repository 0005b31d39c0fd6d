/**
 * The shuffle manager and the rows route: a SQL row shuffle written straight into the executor's
 * arena and read in place.
 *
 * <p>Writers and readers belong to one task thread and are closed by that task's completion
 * listener; the manager is shared by all tasks of a JVM.
 */
package io.weft.spark.shuffle;
