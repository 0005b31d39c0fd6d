package io.weft.transfers;

import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.Event;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Executors of one kernel with a GPU each, or on one GPU, and without NCCL. Each reads data that
 * the other has copied into memory that both map.
 */
class IpcTransfersTest extends GpuTransferContract {
  @Override
  GpuPath way() {
    return GpuPath.IPC;
  }

  @Test
  void nothingGoesThroughTheHost() {
    TestGpus.assumeDoubles();
    executors.start(2);
    exchange(1);
    List<SourceBuffer> sources = sources(0, 2, 3);
    int unused = TestGpus.controls().cudaDoubleHostCopies();
    List<ReceivedBuffer> received = receive(1, 0, 2, 3);
    List<Event> sent = executors.get(0).send(sources, List.of(device(1), device(1)), keys(2, 3));
    sent.forEach(Content::await);
    checkAll(received, 2, 3);
    assertThat(TestGpus.controls().cudaDoubleHostCopies()).isZero();
  }
}
