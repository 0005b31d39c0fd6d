package io.weft.crosshost;

import io.weft.peer.TransportMode;
import org.junit.jupiter.api.BeforeAll;

/** Executors with a GPU each, by NCCL. */
class NcclTransfersTest extends GpuTransferContract {
  @BeforeAll
  static void needsTwo() {
    TestGpus.assume(2);
  }

  @Override
  TransportMode mode() {
    return TransportMode.AUTO;
  }
}
