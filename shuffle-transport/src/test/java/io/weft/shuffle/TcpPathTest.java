package io.weft.shuffle;

import io.weft.shuffle.peer.TransportMode;

class TcpPathTest extends PathContract {
  @Override
  TransportMode mode() {
    return TransportMode.TCP;
  }
}
