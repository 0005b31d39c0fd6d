package io.weft.transfers;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import org.junit.jupiter.api.BeforeAll;

/** Executors with a GPU each, or on one GPU where NCCL lets them, by NCCL. */
class NcclTransfersTest extends GpuTransferContract {
  @BeforeAll
  static void needsNcclForTwo() {
    TestGpus.assume();
    String whyNot = GpuPath.NCCL.whyNot();
    assumeTrue(whyNot.isEmpty(), whyNot);
  }

  @Override
  GpuPath way() {
    return GpuPath.NCCL;
  }
}
