package io.weft.transfers;

import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.device.Event;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Arguments that are refused before any transfer starts, and executors that take no part. */
class ArgumentsTest extends TransferFixture {
  @Override
  Executors.Communicators communicators() {
    return (folder, executor) -> LocalCommunicator::create;
  }

  @BeforeEach
  void start() {
    executors.start(2);
  }

  private static void assertRefused(ThrowingCallable call, String message) {
    assertThatThrownBy(call).isInstanceOf(IllegalArgumentException.class).hasMessage(message);
  }

  @Test
  void lengthsAreEqual() {
    assertRefused(
        () -> executors.get(0).send(sources(0, 1, 2), List.of(device(1)), keys(1, 2, 3)),
        "send needs as many buffers as destinations and keys, but got 2, 1 and 3");
    assertRefused(
        () -> executors.get(0).receive(device(0), shapes(1), List.of(), keys()),
        "receive needs as many shapes as sources and keys, but got 1, 0 and 0");
  }

  @Test
  void oneEndIsHereAndTheOtherIsNot() {
    assertRefused(
        () -> executors.get(0).send(sources(0, 1), List.of(device(0)), keys(1)),
        "transfer 0: source executor 0/device 0 and destination executor 0/device 0 are both on"
            + " executor 0");
    assertRefused(
        () -> executors.get(0).send(sources(1, 1), List.of(device(1)), keys(1)),
        "transfer 0: neither source executor 1/device 0 nor destination executor 1/device 0 is on"
            + " executor 0");
    assertRefused(
        () -> executors.get(0).receive(device(0), shapes(1), List.of(device(0)), keys(1)),
        "transfer 0: source executor 0/device 0 and destination executor 0/device 0 are both on"
            + " executor 0");
    assertRefused(
        () ->
            executors
                .get(0)
                .place(List.of(ArrayPlacement.of(device(1), device(1), shapes(1).get(0), 1))),
        "transfer 0: source executor 1/device 0 and destination executor 1/device 0 are both on"
            + " executor 1");
  }

  @Test
  void shapesHaveElements() {
    SourceBuffer empty = SourceBuffer.of(device(0), TypedBuffer.empty(DataType.FLOAT32));
    assertRefused(
        () -> executors.get(0).send(List.of(empty), List.of(device(1)), keys(1)),
        "transfer 0: the shape float32[0] has no elements");
    assertRefused(
        () ->
            executors
                .get(0)
                .receive(
                    device(0),
                    List.of(shapes(1).get(0), BufferShape.of(DataType.INT16, 4, 0)),
                    List.of(device(1), device(1)),
                    keys(1, 2)),
        "transfer 1: the shape int16[4, 0] has no elements");
  }

  @Test
  void devicesExistAndDataIsThere() {
    SourceBuffer elsewhere = SourceBuffer.of(new DeviceId("0", 3), Content.ints(4, 1));
    assertRefused(
        () -> executors.get(0).send(List.of(elsewhere), List.of(device(1)), keys(1)),
        "transfer 0: executor 0 has no device 3, its devices are [0]");
    assertRefused(
        () ->
            executors
                .get(0)
                .place(List.of(ArrayPlacement.of(device(0), device(1), shapes(1).get(0), 1))),
        "transfer 0: executor 0 is the source and must give the data");
    SourceBuffer data = sources(0, 1).get(0);
    assertRefused(
        () ->
            executors
                .get(0)
                .place(
                    List.of(
                        ArrayPlacement.of(
                            data, device(1), BufferShape.of(DataType.INT32, 16, 17), 1))),
        "transfer 0: the placement is of int32[16, 17] but its data has 256 int32");
  }

  /** Trap 13: transfers never wait for an executor without an end of a placement or a device. */
  @Test
  void anExecutorWithoutADeviceOrAnEndTakesPartAsANoOp() {
    DeviceTransfers without = executors.start(2, "first", 0);
    BufferShape shape = shapes(1).get(0);
    List<DeferredTransfer> nothing =
        without.place(List.of(placement(2, 0, 1, shape, 1), placement(2, 1, 0, shape, 2)));
    assertThat(nothing).hasSize(2).noneMatch(DeferredTransfer::takesPart);
    assertThat(nothing).allMatch(done -> done.event().state() == Event.State.COMPLETE);
    assertThat(nothing).allMatch(done -> done.received().isEmpty());
    assertThat(without.devices()).isEmpty();
    assertThat(without.send(List.of(), List.of(), keys())).isEmpty();
    assertThat(executors.get(0).receive(device(0), List.of(), List.of(), keys())).isEmpty();
    assertThat(executors.rendezvous().opened()).isZero();
    exchange(1);
    assertThat(executors.rendezvous().opened()).isEqualTo(2);
  }
}
