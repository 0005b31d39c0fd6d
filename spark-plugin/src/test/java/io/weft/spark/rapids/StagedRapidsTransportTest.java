package io.weft.spark.rapids;

import io.weft.peer.TransportMode;

/** Data through pinned memory of the hosts. */
class StagedRapidsTransportTest extends RapidsTransportContract {
  @Override
  TransportMode mode() {
    return TransportMode.SHM;
  }
}
