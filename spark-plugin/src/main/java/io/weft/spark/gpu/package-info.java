/**
 * The GPU of an executor for its tasks: opened when the first task asks for it, with the memory
 * that feeds and their exports take of it, and Spark's batches as tables that lie there.
 *
 * <p>{@link io.weft.spark.gpu.ExecutorGpu} belongs to the executor's plugin. What tasks take of it
 * they give back; what they export to other processes belongs to the executor until it is released.
 *
 * <p>A {@link io.weft.spark.gpu.DeviceBatch} owns its table until all of its {@link
 * io.weft.spark.gpu.DeviceColumnVector}s are closed, and the copy on the host that they make when
 * somebody asks them for values. Map outputs belong to the executor's catalog from when they are
 * published until their shuffle is removed.
 *
 * <p>{@code HeldOutputs} owns threads named "weft-device-questions-N", which end when nothing is
 * asked.
 *
 * <p>No class of the driver's binding, or of JNA, is loaded where there is no GPU.
 */
package io.weft.spark.gpu;
