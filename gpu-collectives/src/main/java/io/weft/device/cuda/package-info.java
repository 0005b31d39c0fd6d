/**
 * GPUs through the CUDA driver API: devices with their primary context, which cudf and NCCL share,
 * lanes that are streams, events, pooled device and pinned host memory, memory that spills, and
 * memory of other processes of the host.
 *
 * <p>Nothing here is loaded unless {@link io.weft.device.cuda.CudaLibrary#load} is called. Whoever
 * opens a device, lane or pool closes it, memory and lanes before their device. A lane owns two
 * daemon threads: one enqueues, one sees work end; tiers own one that moves memory.
 */
package io.weft.device.cuda;
