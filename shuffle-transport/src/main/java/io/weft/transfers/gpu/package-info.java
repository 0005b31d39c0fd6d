/**
 * This executor's GPU as an end of transfers: the choice of the GPU, its receive buffers, and the
 * path to another executor's GPU. Start with {@link io.weft.transfers.gpu.GpuSearch}, which finds
 * the GPU, with {@link io.weft.transfers.gpu.TransferGpu}, which opens it and owns its context and
 * memory, and with {@link io.weft.transfers.gpu.GpuRanks}, which makes it a rank of communicators.
 *
 * <p>The path is NCCL if both ends can use it. Else, on one kernel, each end maps a part of the
 * other GPU's memory. Else arrays are staged through pinned memory and sent between the hosts. Both
 * ends reach the same choice when they create their communicator.
 *
 * <p>The driver, NCCL and JNA are loaded only if the capabilities include a GPU and JNA. The search
 * runs on a thread "weft-gpu-search", because a broken driver may never answer. "weft-gpu-open"
 * opens a GPU, and "weft-gpu-idle" frees its idle memory. Wires are used by the lanes of their
 * cliques.
 */
package io.weft.transfers.gpu;
