package io.weft.transfers;

import org.junit.jupiter.api.BeforeAll;

/** Executors with a GPU each, by NCCL. */
class NcclTransfersTest extends GpuTransferContract {
  @BeforeAll
  static void needsTwo() {
    TestGpus.assume(2);
  }

  @Override
  GpuPath way() {
    return GpuPath.NCCL;
  }
}
