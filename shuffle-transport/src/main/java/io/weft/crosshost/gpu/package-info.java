/**
 * This executor's GPU as an end of transfers: which one it is, the memory that arrays arrive in,
 * and the way to another executor's GPU. That is NCCL where both ends can use it and may; else, on
 * one kernel, memory of each GPU that the other end has mapped; else arrays are staged through
 * pinned memory and go as those of hosts do. Both ends come to the same choice in the meeting in
 * which their communicator is made.
 *
 * <p>Nothing of the driver, NCCL or JNA is loaded unless the machine's record has a GPU and JNA. A
 * search has a thread of its own, "weft-gpu-search", as a broken driver may never answer; wires are
 * used by the lanes of their cliques. {@link io.weft.crosshost.gpu.TransferGpu} owns the context
 * and the memory, a wire its stream.
 */
package io.weft.crosshost.gpu;
