package io.weft.transfers;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.transfers.ReceiveMemory.BufferStatistics;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Executors with a GPU each, or on one GPU where NCCL lets them, by NCCL. */
class NcclTransfersTest extends GpuTransferContract {
  @BeforeAll
  static void needsNcclForTwo() {
    TestGpus.assume(GpuPath.NCCL);
  }

  @Override
  GpuPath way() {
    return GpuPath.NCCL;
  }

  @Test
  void receiveMemoryIsReused() {
    executors.start(2);
    exchange(1);
    long fresh = buffers().freshBytes();
    assertThat(fresh).isPositive();
    for (int key = 2; key < 10; key++) {
      exchange(key);
    }
    assertThat(buffers().freshBytes()).isEqualTo(fresh);
    assertThat(buffers().out()).isZero();
  }

  private BufferStatistics buffers() {
    return executors.get(1).statistics().buffers();
  }
}
