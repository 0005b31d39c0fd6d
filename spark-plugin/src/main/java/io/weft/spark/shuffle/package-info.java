/**
 * The shuffle manager and two routes through the executor's arena: the rows route, a SQL row
 * shuffle read in place, and the Kryo route, a shuffle of an RDD whose records may hold tensors.
 *
 * <p>Writers and readers belong to one task thread and are closed by that task's completion
 * listener; the manager is shared by all tasks of a JVM.
 */
package io.weft.spark.shuffle;
