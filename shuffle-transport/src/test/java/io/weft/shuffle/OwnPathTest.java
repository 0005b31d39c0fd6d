package io.weft.shuffle;

import io.weft.shuffle.peer.TransportMode;

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
