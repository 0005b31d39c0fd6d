package io.weft.crosshost;

/**
 * The two devices of a transfer, seen from one of them.
 *
 * @param local the device at this end
 * @param peer the device at the other end
 * @param sends whether data goes from local to peer
 */
record TransferEnds(DeviceId local, DeviceId peer, boolean sends) {
  /** For example "from executor 1/device 0 to executor 2/device 0". */
  String text() {
    return sends ? "from " + local + " to " + peer : "from " + peer + " to " + local;
  }
}
