package io.weft.transfers;

import static io.weft.transfers.Content.await;
import static io.weft.transfers.Content.failure;
import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.Event;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Sends of one pair with recorded sources that end at different times. */
class RecordedPairsTest extends HeldSourcesFixture {
  /** A send waits for its own source and not for the next one, which is held longer. */
  @Test
  void aSendDoesNotWaitForTheNextRecordedSource() {
    executors.start(2);
    exchange(1);
    Held first = held(7);
    Held next = heldLonger(first, 9);
    // In one batch, so that one manifest could offer both.
    List<Event> sends =
        executors
            .get(0)
            .send(List.of(first.source(), next.source()), times(2, device(1)), keys(7, 9));
    Event sent = sends.get(0);
    Event later = sends.get(1);
    List<ReceivedBuffer> received = receive(1, 0, 7, 9);
    awaitBehind(0, 1);
    holds.holdNext();
    await(sent);
    checkAll(received.subList(0, 1), 7);
    assertThat(later.state()).isNotEqualTo(Event.State.COMPLETE);
    assertThat(next.written().state()).isEqualTo(Event.State.RECORDED);
    holds.release();
    await(later);
    checkAll(received.subList(1, 2), 9);
  }

  /** A cancelled send moves nothing, so it must not admit later sends of its source. */
  @Test
  void aCancelledSendDoesNotLetItsSourceJoinAnother() {
    executors.start(2);
    exchange(1);
    Held first = held(7);
    Held next = heldLonger(first, 9);
    BufferShape shape = shapes(1).get(0);
    List<DeferredTransfer> placed =
        executors
            .get(0)
            .place(
                List.of(
                    ArrayPlacement.of(first.source(), device(1), shape, 7),
                    ArrayPlacement.of(next.source(), device(1), shape, 8),
                    ArrayPlacement.of(next.source(), device(1), shape, 9)));
    placed.get(1).close();
    Event sent = placed.get(0).event();
    Event later = placed.get(2).event();
    var unused = later.toFuture();
    List<ReceivedBuffer> received = receive(1, 0, 7, 8, 9);
    awaitBehind(0, 1);
    holds.holdNext();
    await(sent);
    checkAll(received.subList(0, 1), 7);
    assertThat(failure(received.get(1).event())).hasMessageContaining("dropped by its producer");
    received.get(1).close();
    assertThat(next.written().state()).isEqualTo(Event.State.RECORDED);
    assertThat(received.get(2).event().state()).isNotEqualTo(Event.State.COMPLETE);
    holds.release();
    await(later);
    checkAll(received.subList(2, 3), 9);
  }

  /** Both ends send a verdict, and the verdicts differ. */
  @Test
  void bothEndsSendBehindDevicesAndOneSourceFails() {
    executors.start(2);
    exchange(1);
    Held good = held(7);
    Event before = arrays.lane(GpuHolds.NEXT).submit("the work between", () -> {}, good.before());
    Held bad = written(1, writing(1), before, 9);
    Event sent = send(good, 1, 7);
    Event failed = send(1, bad, 0, 9);
    ReceivedBuffer arrived = receive(1, 0, 7).get(0);
    ReceivedBuffer spoiled = receive(0, 1, 9).get(0);
    awaitBehind(0, 1);
    holds.lose(GpuHolds.NEXT);
    holds.release();
    Throwable cause = failure(bad.before());
    await(sent);
    checkAll(List.of(arrived), 7);
    assertThat(failure(failed)).isSameAs(cause);
    assertThat(failure(spoiled.event()))
        .hasMessageContaining("failed at executor 1/device 0: ")
        .hasMessageContaining("CUDA_ERROR_LAUNCH_FAILED (719)");
    spoiled.close();
    holds.restore();
    exchange(8);
  }
}
