package io.weft.crosshost;

import io.weft.collectives.CommunicatorFactory;
import io.weft.crosshost.buffer.ReceiveMemory;
import io.weft.crosshost.wire.TransferWire;

/**
 * Resources for transfers between GPUs, in addition to those between hosts. The caller closes them
 * after the transfers.
 *
 * @param communicators makes the communicators of cliques of GPUs
 * @param wires opens a wire over such a communicator
 * @param memory of this executor's GPU, for receive buffers
 */
public record GpuResources(
    CommunicatorFactory communicators, TransferWire.Factory wires, ReceiveMemory memory) {}
