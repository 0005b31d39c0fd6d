package io.weft.transfers;

import static io.weft.transfers.Content.failure;
import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.DataType;
import io.weft.transfers.ReceiveMemory.BufferStatistics;
import java.util.List;
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

  /** Without other memory, the pair needs one registration, at the receiver. */
  @Test
  void receiveMemoryIsRegisteredOnceForAPair() {
    executors.start(2);
    exchange(1);
    BufferStatistics first = buffers();
    assertThat(first.registrations()).isOne();
    assertThat(first.freshBytes()).isPositive();
    for (int key = 2; key < 10; key++) {
      exchange(key);
    }
    assertThat(buffers().registrations()).isOne();
    assertThat(buffers().freshBytes()).isEqualTo(first.freshBytes());
    assertThat(executors.get(0).statistics().buffers().registrations()).isZero();
  }

  /** A new communicator of the pair registers the same memory again. */
  @Test
  void eachCommunicatorRegistersTheMemory() {
    executors.start(3);
    for (int from : List.of(0, 2, 0, 2)) {
      List<ReceivedBuffer> received = receive(1, from, 5);
      send(from, 1, 5).forEach(Content::await);
      checkAll(received, 5);
    }
    assertThat(buffers().registrations()).isEqualTo(2);
  }

  /** Large memory needs the budget of the idle segment, which is freed and registered no more. */
  @Test
  void registeredMemoryThatIsFreedIsRegisteredAgain() {
    executors.start(2);
    exchange(1);
    BufferShape all = BufferShape.of(DataType.INT8, Executors.GPU_BYTES);
    ReceivedBuffer large =
        executors.get(1).receive(device(1), List.of(all), List.of(device(0)), keys(2)).get(0);
    large.close();
    assertThat(failure(send(0, 1, 2).get(0))).isNotNull();
    exchange(3);
    assertThat(buffers().registrations()).isEqualTo(2);
    assertThat(buffers().out()).isZero();
  }

  private BufferStatistics buffers() {
    return executors.get(1).statistics().buffers();
  }
}
