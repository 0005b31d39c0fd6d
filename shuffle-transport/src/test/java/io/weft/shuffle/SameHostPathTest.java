package io.weft.shuffle;

import io.weft.shuffle.peer.TransportMode;

class SameHostPathTest extends PathContract {
  @Override
  TransportMode mode() {
    return TransportMode.SHM;
  }
}
