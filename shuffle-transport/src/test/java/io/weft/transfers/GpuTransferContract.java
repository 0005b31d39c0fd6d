package io.weft.transfers;

import static io.weft.transfers.Content.await;
import static io.weft.transfers.Content.failure;
import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaLane;
import io.weft.tensor.codec.CodecKind;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The contract of transfers, with the additions for GPUs. */
abstract class GpuTransferContract extends TransferContract {
  private final GpuArrays arrays = new GpuArrays();

  @BeforeAll
  static void needsDoubles() {
    TestGpus.assume();
  }

  /** The path that these tests use. */
  abstract GpuPath way();

  @Override
  Executors.Communicators communicators() {
    return (folder, executor) ->
        new HostCommunicators(HostOptions.defaults().withFolder(folder.resolve("shared")));
  }

  @Override
  void open(TransferOptions options) {
    super.open(options);
    executors.gpus(way());
  }

  @Override
  @AfterEach
  void close() {
    boolean used = executors != null;
    super.close();
    executors = null;
    if (used) {
      arrays.close();
      TestGpus.assertClean();
    }
  }

  @Override
  TypedBuffer placed(int executor, TypedBuffer array) {
    return arrays.copy(executor, array);
  }

  @Override
  TypedBuffer onHost(TypedBuffer buffer) {
    return arrays.toHost(buffer);
  }

  /** Holds from the second batch on; the first allocates GPU memory. */
  @Override
  @Test
  void theReceivePathAllocatesNothing() {
    executors.start(2);
    for (int round = 0; round < 2; round++) {
      List<ReceivedBuffer> received = receive(1, 0, 1, 2, 3);
      send(0, 1, 1, 2, 3).forEach(Content::await);
      checkAll(received, 1, 2, 3);
    }
    long allocated = executors.get(1).statistics().buffers().allocated();
    long arena = executors.arena(1).statistics().allocations();
    for (int round = 0; round < 50; round++) {
      List<ReceivedBuffer> received = receive(1, 0, 1, 2, 3);
      send(0, 1, 1, 2, 3).forEach(Content::await);
      checkAll(received, 1, 2, 3);
    }
    TransferStatistics statistics = executors.get(1).statistics();
    assertThat(statistics.buffers().allocated()).isEqualTo(allocated);
    assertThat(statistics.buffers().reused()).isGreaterThanOrEqualTo(150);
    assertThat(statistics.buffers().out()).isZero();
    assertThat(executors.arena(1).statistics().allocations()).isEqualTo(arena);
  }

  /** A received array is forwarded and released at once; the next array gets other memory. */
  @Override
  @Test
  void aSourceThatIsReleasedAfterItsSubmissionArrivesAsItWas() {
    executors.start(2);
    ReceivedBuffer memory = receive(0, 1, 5).get(0);
    send(1, 0, 5).forEach(Content::await);
    await(memory.event());
    HostEvent written = new HostEvent("slow work");
    Event sent =
        executors
            .get(0)
            .send(
                List.of(new SourceBuffer(device(0), memory.buffer(), written)),
                List.of(device(1)),
                keys(7))
            .get(0);
    memory.close();
    List<ReceivedBuffer> other = receive(0, 1, 8);
    send(1, 0, 8).forEach(Content::await);
    checkAll(other, 8);
    List<ReceivedBuffer> received = receive(1, 0, 7);
    written.complete();
    await(sent);
    checkAll(received, 5);
    assertThat(executors.get(0).statistics().buffers().out()).isZero();
  }

  /** The source is the recorded work of the lane that writes the array. */
  @Test
  void aSendFollowsTheLaneThatWritesItsArray() {
    executors.start(2);
    TypedBuffer array = Content.ints(256, 7);
    TypedBuffer onGpu = arrays.like(0, array);
    CudaLane lane = arrays.lane(0);
    HostEvent go = new HostEvent("the start of the lane's work");
    Event written =
        lane.submit(
            "writing",
            () -> lane.stream().copyToDevice(onGpu.address(), array.address(), array.bytes()),
            go);
    Event sent =
        executors
            .get(0)
            .send(List.of(new SourceBuffer(device(0), onGpu, written)), List.of(device(1)), keys(7))
            .get(0);
    List<ReceivedBuffer> received = receive(1, 0, 7);
    assertThat(written.state()).isEqualTo(Event.State.PENDING);
    assertThat(sent.state()).isEqualTo(Event.State.PENDING);
    go.complete();
    Content.awaitRecorded(sent);
    await(sent);
    checkAll(received, 7);
  }

  /** A failed source fails the transfer on both GPUs, and the pair goes on. */
  @Test
  void aLaneThatFailsFailsItsTransfer() {
    executors.start(2);
    CudaLane lane = arrays.lane(0);
    Event written =
        lane.submit(
            "writing",
            () -> {
              throw new IllegalStateException("no such column");
            });
    TypedBuffer onGpu = arrays.like(0, Content.ints(256, 1));
    Event sent =
        executors
            .get(0)
            .send(List.of(new SourceBuffer(device(0), onGpu, written)), List.of(device(1)), keys(7))
            .get(0);
    ReceivedBuffer received = receive(1, 0, 7).get(0);
    assertThat(failure(sent)).hasMessageContaining("no such column");
    assertThat(failure(received.event())).hasMessageContaining("no such column");
    received.close();
    exchange(8);
  }

  /** More than one staged wave, and not a multiple of the wave. */
  @Test
  void largeArraysArriveWhole() {
    executors.start(2);
    BufferShape shape = BufferShape.of(DataType.INT8, (20 << 20) + 12_345);
    TypedBuffer array = placed(0, Content.of(shape, 3));
    Event sent =
        executors
            .get(0)
            .send(List.of(SourceBuffer.of(device(0), array)), List.of(device(1)), keys(3))
            .get(0);
    ReceivedBuffer received =
        executors.get(1).receive(device(1), List.of(shape), List.of(device(0)), keys(3)).get(0);
    await(sent);
    await(received.event());
    check(received.buffer(), 3);
    received.close();
  }

  @Test
  void codecsAreForArraysOfTheHost() {
    executors.start(2);
    BufferShape shape = BufferShape.of(DataType.FLOAT32, 256);
    assertThatThrownBy(
            () ->
                executors
                    .get(1)
                    .receive(
                        device(1), List.of(shape), List.of(device(0)), keys(1), CodecKind.BFLOAT16))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("codecs take arrays in memory of the host");
    assertThat(executors.get(1).statistics().buffers().out()).isZero();
    exchange(2);
  }

  @Test
  void aGpuWithoutRoomIsAnErrorAtOnce() {
    executors.start(2);
    BufferShape shape = BufferShape.of(DataType.INT8, Executors.GPU_BYTES + 1);
    assertThatThrownBy(
            () -> executors.get(1).receive(device(1), List.of(shape), List.of(device(0)), keys(1)))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("no memory to receive int8")
        .hasMessageContaining("exceed the budget");
    exchange(2);
  }

  /** Nothing is sent, and the pair goes on. */
  @Test
  void aSourceThatIsNotInTheGpusMemoryIsAnErrorAtOnce() {
    executors.start(2);
    TypedBuffer onHost = Content.ints(256, 1);
    TypedBuffer good = placed(0, Content.ints(256, 2));
    assertThatThrownBy(
            () ->
                executors
                    .get(0)
                    .send(
                        List.of(
                            SourceBuffer.of(device(0), good), SourceBuffer.of(device(0), onHost)),
                        times(2, device(1)),
                        keys(1, 2)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("transfer 1: 256 int32 at 0x")
        .hasMessageContaining("cannot be sent from " + device(0) + ": it is memory of the host")
        .hasMessageContaining("copy it there first, or send it from device 0, the host");
    exchange(3);
  }

  /** The GPU of another executor, which this one may be able to reach. */
  @Test
  void aSourceOnAnotherGpuIsAnErrorAtOnce() {
    TestGpus.assume(2);
    executors.start(2);
    TypedBuffer elsewhere = placed(1, Content.ints(256, 1));
    assertThatThrownBy(
            () ->
                executors
                    .get(0)
                    .send(
                        List.of(SourceBuffer.of(device(0), elsewhere)),
                        List.of(device(1)),
                        keys(1)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("it is memory of cuda:1, not of cuda:0");
    exchange(3);
  }
}
