/**
 * Tables of cudf on the GPUs of executors: functions from table to table for batches of queries.
 * {@link io.weft.spark.cudf.CudfBatches} makes a {@link io.weft.spark.gpu.DeviceFunction} of one. A
 * batch becomes a table of cudf without a copy; the table that the function makes is copied once,
 * within the device, and closed.
 *
 * <p>Users bring cudf ({@code ai.rapids:cudf}), which is in no jar of Weft. Nothing outside this
 * package refers to it, and nothing of cudf is loaded unless a query has such a function. cudf's
 * memory (RMM) belongs to whoever initialises it; nothing here does, other than by the {@link
 * io.weft.spark.cudf.CudfStart} of a program.
 *
 * <p>No threads: all is done on the task's own, whose default stream cudf works on. A view lives
 * for one call of the function, and what it lies in belongs to the batch.
 */
package io.weft.spark.cudf;
