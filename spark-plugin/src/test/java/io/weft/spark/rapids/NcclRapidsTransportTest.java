package io.weft.spark.rapids;

import io.weft.peer.TransportMode;

/** Data by NCCL. */
class NcclRapidsTransportTest extends RapidsTransportContract {
  @Override
  TransportMode mode() {
    return TransportMode.AUTO;
  }
}
