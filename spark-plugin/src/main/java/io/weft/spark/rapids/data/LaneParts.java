package io.weft.spark.rapids.data;

import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.crosshost.wire.TransferWire;

/**
 * The factories of the communicators and wires of lanes.
 *
 * @param communicators of two GPUs
 * @param wires opens a lane's wire over a communicator
 * @param options with the timeout of a move and of a bootstrap
 */
public record LaneParts(
    CommunicatorFactory communicators, TransferWire.Factory wires, CommunicatorOptions options) {}
