/**
 * Functions on batches of queries with JCuda, on the GPUs of executors. {@link
 * io.weft.spark.gpu.jcuda.JcudaBatches} makes a {@link io.weft.spark.gpu.DeviceFunction} of one. A
 * batch's columns are {@code CUdeviceptr}s into its own memory; the columns that the function
 * returns are copied once, within the device.
 *
 * <p>Users provide JCuda ({@code org.jcuda:jcuda} and {@code org.jcuda:jcuda-natives}), which is in
 * no jar of Weft. No class outside this package refers to it, and only its part for the driver API
 * is loaded, before the first batch of such a function.
 *
 * <p>No threads: the function runs on the task's own thread and enqueues on the stream of the
 * task's lane. All memory belongs to the call.
 */
package io.weft.spark.gpu.jcuda;
