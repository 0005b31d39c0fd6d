package io.weft.transfers;

import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.nccl.DeviceBuffer;
import io.weft.device.Event;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.NoRoomException;
import java.time.Duration;
import java.util.List;
import org.awaitility.Awaitility;
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

  /**
   * A pool gets lent memory back for another size although the pair moves nothing more, and long
   * before the pair counts as idle.
   */
  @Test
  void lentMemoryReturnsFromAPairThatRests() {
    executors.start(2);
    CudaDevice gpu = TestGpus.cuda().open(TestGpus.ordinal(0));
    CudaMemoryPool pool = CudaMemoryPool.open(gpu, CudaMemoryPool.Kind.DEVICE, 16 << 20);
    BufferShape shape = BufferShape.of(DataType.INT8, 8 << 20);
    try (CudaMemory memory = pool.take(8 << 20)) {
      TypedBuffer array =
          TypedBuffer.of(new DeviceBuffer(memory), 0, DataType.INT8, memory.bytes());
      Event sent =
          executors
              .get(0)
              .send(List.of(SourceBuffer.of(device(0), array)), List.of(device(1)), keys(1))
              .get(0);
      ReceivedBuffer received =
          executors.get(1).receive(device(1), List.of(shape), List.of(device(0)), keys(1)).get(0);
      Content.await(sent);
      Content.await(received.event());
      received.close();
    }
    assertThat(pool.lentBytes()).isEqualTo(8 << 20);
    assertThatThrownBy(() -> pool.take(12 << 20)).isInstanceOf(NoRoomException.class);
    Awaitility.await()
        .atMost(Duration.ofSeconds(30))
        .untilAsserted(() -> assertThat(pool.lentBytes()).isZero());
    pool.take(12 << 20).close();
    for (int executor = 0; executor < 2; executor++) {
      int each = executor;
      assertThat(executors.count(each, TransferCounter.FAILED)).isZero();
      // Memory returns a moment before its pair is counted.
      Awaitility.await().until(() -> executors.count(each, TransferCounter.CLIQUES_RETIRED) == 1);
    }
    exchange(2);
    pool.close();
    gpu.close();
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
