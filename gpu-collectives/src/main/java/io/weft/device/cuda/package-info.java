/**
 * GPUs through the CUDA driver API: devices, lanes and events, and memory that is pooled, spilled
 * or shared with other processes of the host.
 *
 * <p>Start with {@link io.weft.device.cuda.CudaDevice}, which uses the primary context that cudf
 * and NCCL share. {@link io.weft.device.cuda.CudaLane} orders its work; {@link
 * io.weft.device.cuda.CudaMemoryPool} and {@link io.weft.device.cuda.DeviceTiers} manage its
 * memory.
 *
 * <p>The driver is loaded only by {@link io.weft.device.cuda.CudaLibrary#load}. The code that opens
 * a device, lane or pool closes it, memory and lanes before their device. A lane owns two daemon
 * threads: one enqueues, one sees work end. Tiers own one thread that moves memory.
 */
package io.weft.device.cuda;
