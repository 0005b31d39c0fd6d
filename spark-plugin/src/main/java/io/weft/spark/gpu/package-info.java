/**
 * The GPU of an executor for its tasks: opened when the first task asks for it, with the memory
 * that feeds and their exports take of it.
 *
 * <p>{@link io.weft.spark.gpu.ExecutorGpu} belongs to the executor's plugin. What tasks take of it
 * they give back; what they export to other processes belongs to the executor until it is released.
 * No class of the driver's binding, or of JNA, is loaded where there is no GPU.
 */
package io.weft.spark.gpu;
