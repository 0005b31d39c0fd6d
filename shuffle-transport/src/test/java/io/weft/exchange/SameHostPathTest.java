package io.weft.exchange;

import io.weft.peer.TransportMode;

class SameHostPathTest extends PathContract {
  @Override
  TransportMode mode() {
    return TransportMode.SHM;
  }
}
