/**
 * The GPU of an executor for its tasks. It is opened when the first task asks for it. Feeds and
 * their exports allocate memory of it, and Spark batches can be tables in its memory.
 *
 * <p>{@link io.weft.spark.gpu.ExecutorGpu} belongs to the executor's plugin. Tasks free the memory
 * that they allocate; memory that is exported to other processes belongs to the executor until it
 * is released.
 *
 * <p>A {@link io.weft.spark.gpu.DeviceBatch} owns its table until all of its {@link
 * io.weft.spark.gpu.DeviceColumnVector}s are closed, and also the copy on the host that is made
 * when values are read. Published map outputs belong to the executor's catalog until their shuffle
 * is removed.
 *
 * <p>{@code HeldOutputs} owns threads named "weft-device-questions-N", which end when they are
 * idle.
 *
 * <p>On an executor without a GPU, no class of the driver's binding, or of JNA, is loaded.
 */
package io.weft.spark.gpu;
