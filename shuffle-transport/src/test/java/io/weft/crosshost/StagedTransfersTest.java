package io.weft.crosshost;

import io.weft.peer.TransportMode;

/** Executors with a GPU each that do without NCCL, through memory of the host. */
class StagedTransfersTest extends GpuTransferContract {
  @Override
  TransportMode mode() {
    return TransportMode.SHM;
  }
}
