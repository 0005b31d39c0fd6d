package io.weft.exchange;

import io.weft.peer.TransportMode;

class OwnPathTest extends PathContract {
  @Override
  TransportMode mode() {
    return TransportMode.AUTO;
  }

  @Override
  boolean own() {
    return true;
  }
}
