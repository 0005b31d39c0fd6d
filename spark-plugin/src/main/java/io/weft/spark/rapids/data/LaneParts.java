package io.weft.spark.rapids.data;

import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.crosshost.wire.TransferWire;

/**
 * What lanes make their communicators of.
 *
 * @param communicators of two GPUs
 * @param wires makes a lane's wire of a communicator
 * @param options with the deadline of a passage, and of a meeting
 */
public record LaneParts(
    CommunicatorFactory communicators, TransferWire.Factory wires, CommunicatorOptions options) {}
