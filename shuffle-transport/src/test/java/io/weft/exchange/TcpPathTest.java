package io.weft.exchange;

import io.weft.peer.TransportMode;

class TcpPathTest extends PathContract {
  @Override
  TransportMode mode() {
    return TransportMode.TCP;
  }
}
