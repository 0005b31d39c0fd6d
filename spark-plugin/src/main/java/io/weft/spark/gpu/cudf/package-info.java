/**
 * Functions on batches of queries as cudf tables, on the GPUs of executors. {@link
 * io.weft.spark.gpu.cudf.CudfBatches} makes a {@link io.weft.spark.gpu.DeviceFunction} of one. A
 * batch becomes a cudf table without a copy; the table that the function makes is copied once,
 * within the device, and closed.
 *
 * <p>Users provide cudf ({@code ai.rapids:cudf}), which is in no jar of Weft. No class outside this
 * package refers to it, and it is loaded only if a query has such a function. cudf's memory (RMM)
 * belongs to the code that initialises it; Weft initialises it only through the {@link
 * io.weft.spark.gpu.cudf.CudfStart} of a program.
 *
 * <p>No threads: all work is done on the task's own thread, on cudf's default stream of that
 * thread. A view is valid for one call of the function, and its memory belongs to the batch.
 */
package io.weft.spark.gpu.cudf;
