/**
 * GPUs through the CUDA driver API. The package has devices with the primary context that cudf and
 * NCCL share, streams as lanes, and events. It has pooled device and pinned host memory, memory
 * that spills, and memory of other processes of the host.
 *
 * <p>The driver is loaded only by {@link io.weft.device.cuda.CudaLibrary#load}. The code that opens
 * a device, lane or pool closes it, memory and lanes before their device. A lane owns two daemon
 * threads: one enqueues, one sees work end. Tiers own one thread that moves memory.
 */
package io.weft.device.cuda;
