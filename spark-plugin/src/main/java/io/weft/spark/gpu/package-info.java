/**
 * The GPU of an executor for its tasks. {@link io.weft.spark.gpu.ExecutorGpu} opens it when the
 * first task asks for it, {@link io.weft.spark.gpu.DeviceExchange} exchanges blocks between GPUs,
 * and {@link io.weft.spark.gpu.DeviceBatch} is a Spark batch as a table in GPU memory.
 *
 * <p>{@code ExecutorGpu} belongs to the executor's plugin. Tasks free the memory that they
 * allocate; memory that is exported to other processes belongs to the executor until it is
 * released. A {@code DeviceBatch} owns its table, and the copy on the host that is made when values
 * are read, until all of its columns are closed. Published map outputs belong to the executor's
 * catalog until their shuffle is removed.
 *
 * <p>Requests for the map outputs of other executors run on threads named "weft-device-requests-N",
 * which end when they are idle. On an executor without a GPU, no class of the driver's binding, or
 * of JNA, is loaded.
 */
package io.weft.spark.gpu;
