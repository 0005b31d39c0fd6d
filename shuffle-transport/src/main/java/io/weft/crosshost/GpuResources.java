package io.weft.crosshost;

import io.weft.collectives.CommunicatorFactory;
import io.weft.crosshost.buffer.ReceiveMemory;
import io.weft.crosshost.wire.TransferWire;

/**
 * What transfers between GPUs use, beside what those between hosts do. The caller's to close, after
 * the transfers.
 *
 * @param communicators makes the communicators of cliques of GPUs
 * @param wires makes what transfers use of such a communicator
 * @param memory of this executor's GPU, for receive buffers
 */
public record GpuResources(
    CommunicatorFactory communicators, TransferWire.Factory wires, ReceiveMemory memory) {}
