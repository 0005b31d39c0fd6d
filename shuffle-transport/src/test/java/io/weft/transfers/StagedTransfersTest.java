package io.weft.transfers;

import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** Executors with a GPU each and without NCCL and CUDA IPC: arrays go through host memory. */
class StagedTransfersTest extends GpuTransferContract {
  /** Shorter than the timeout for a hanging stream. */
  private static final Duration SOON = Duration.ofSeconds(15);

  @Override
  GpuPath way() {
    return GpuPath.STAGED;
  }

  /** Only the lane of the pair waits for the GPU. */
  @Test
  void aWaiterGetsTheFailureWhileTheGpuHangs() {
    TestGpus.assumeDoubles();
    executors.start(2);
    exchange(1);
    List<SourceBuffer> sources = sources(0, 2);
    List<ReceivedBuffer> received;
    CompletableFuture<Void> ending;
    int unused = TestGpus.controls().cudaDoubleHostCopies();
    try {
      TestGpus.controls().cudaDoublePause(1);
      received = receive(1, 0, 2);
      Event sent = executors.get(0).send(sources, List.of(device(1)), keys(2)).get(0);
      await().until(() -> TestGpus.controls().cudaDoubleHostCopies() > 0);
      ending =
          CompletableFuture.runAsync(
              () -> executors.get(0).fail("1", "first", "executor 1 is gone"));
      assertThatThrownBy(() -> sent.await(Deadline.after(SOON)))
          .isInstanceOf(EventFailedException.class)
          .hasMessageContaining("executor 1 is gone");
      assertThat(sent.failure().orElseThrow()).hasMessageContaining("executor 1");
    } finally {
      TestGpus.controls().cudaDoublePause(0);
    }
    ending.join();
    received.forEach(ReceivedBuffer::close);
  }
}
