package io.weft.transfers;

import static io.weft.transfers.Content.await;
import static io.weft.transfers.Content.failure;
import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.Event;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaLane;
import java.time.Duration;
import java.util.List;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

/**
 * NCCL gets a send while the work that writes its array still runs. That work waits for a held GPU,
 * so only the test decides when it ends.
 */
class RecordedSourcesTest extends HeldSourcesFixture {
  /** The work's last bytes arrive, although the send was enqueued before the work ran. */
  @Test
  void aGroupIsEnqueuedWhileItsSourceIsHeldAndMovesItsResult() {
    executors.start(2);
    exchange(1);
    holds.countLaunches();
    Held held = held(7);
    Event sent = send(held, 1, 7);
    ReceivedBuffer received = receive(1, 0, 7).get(0);
    awaitBehind(0, 1);
    // One launch for each end's part of the group.
    Awaitility.await("NCCL").atMost(DEADLINE).until(() -> holds.launches() == 2);
    assertThat(held.written().state()).isEqualTo(Event.State.RECORDED);
    assertThat(sent.state()).isEqualTo(Event.State.RECORDED);
    assertThat(received.event().state()).isEqualTo(Event.State.RECORDED);
    holds.release();
    await(sent);
    checkAll(List.of(received), 7);
    assertThat(held.written().state()).isEqualTo(Event.State.COMPLETE);
    assertThat(executors.count(0, TransferCounter.SENT)).isEqualTo(2);
    assertThat(executors.count(1, TransferCounter.RECEIVED)).isEqualTo(2);
    exchange(8);
  }

  /** If the device waited, transfers in the other direction would wait behind the send. */
  @Test
  void whereDevicesAreNotFollowedASendWaitsUntilItsSourceIsWritten() {
    executors.waitingForDevices().start(2);
    exchange(1);
    Held held = held(7);
    Event sent = send(held, 1, 7);
    ReceivedBuffer received = receive(1, 0, 7).get(0);
    List<ReceivedBuffer> back = receive(0, 1, 9);
    send(1, 0, 9).forEach(Content::await);
    checkAll(back, 9);
    assertThat(held.written().state()).isEqualTo(Event.State.RECORDED);
    holds.release();
    await(sent);
    checkAll(List.of(received), 7);
    assertThat(executors.count(0, TransferCounter.GROUPS_BEHIND_DEVICES)).isZero();
  }

  /** The moved data is void, and the pair goes on with the same communicator. */
  @Test
  void aSourceThatFailsWhenItIsEnqueuedFailsTheTransferOnBothSides() {
    executors.start(2);
    exchange(1);
    Held held = held(7);
    Event sent = send(held, 1, 7);
    ReceivedBuffer received = receive(1, 0, 7).get(0);
    awaitBehind(0, 1);
    holds.lose();
    Throwable cause = failure(held.before());
    holds.release();
    assertThat(failure(sent)).isSameAs(cause);
    assertThat(failure(received.event()))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("failed at executor 0/device 0: ")
        .hasMessageContaining("executor 1/device 0")
        .hasMessageContaining("CUDA_ERROR_LAUNCH_FAILED (719)");
    received.close();
    holds.restore();
    exchange(8);
    assertThat(executors.count(0, TransferCounter.FAILED)).isOne();
    assertThat(executors.count(1, TransferCounter.FAILED)).isOne();
    assertThat(executors.get(0).statistics().cliques().created()).isEqualTo(1);
  }

  /** Other peers and earlier transfers do not wait for a slow source. */
  @Test
  void aHeldSourceDelaysOnlyTransfersBehindIt() {
    executors.start(3);
    exchange(1);
    Held held = held(7);
    SourceBuffer ready = sources(0, 5).get(0);
    List<Event> sent =
        executors
            .get(0)
            .send(
                List.of(ready, new SourceBuffer(device(0), held.array(), held.written())),
                times(2, device(1)),
                keys(5, 7));
    List<ReceivedBuffer> received = receive(1, 0, 5, 7);
    awaitBehind(0, 1);
    await(sent.get(0));
    checkAll(received.subList(0, 1), 5);
    for (int[] pair : new int[][] {{0, 2}, {2, 1}, {2, 0}}) {
      List<ReceivedBuffer> other = receive(pair[1], pair[0], 20);
      send(pair[0], pair[1], 20).forEach(Content::await);
      checkAll(other, 20);
    }
    assertThat(sent.get(1).state()).isEqualTo(Event.State.RECORDED);
    assertThat(received.get(1).event().state()).isEqualTo(Event.State.RECORDED);
    holds.release();
    await(sent.get(1));
    checkAll(received.subList(1, 2), 7);
  }

  /** One source at a time: a send does not wait for the next source. */
  @Test
  void aSourceThatHasEndedDoesNotWaitForTheNextOne() {
    executors.start(2);
    exchange(1);
    Held first = held(7);
    Event sent = send(first, 1, 7);
    ReceivedBuffer received = receive(1, 0, 7).get(0);
    awaitBehind(0, 1);
    List<Event> behind = send(0, 1, 9);
    ReceivedBuffer next = receive(1, 0, 9).get(0);
    assertThat(sent.state()).isEqualTo(Event.State.RECORDED);
    holds.release();
    await(sent);
    checkAll(List.of(received, next), 7, 9);
    behind.forEach(Content::await);
    assertThat(executors.count(0, TransferCounter.GROUPS_BEHIND_DEVICES)).isOne();
  }

  /**
   * A device cannot stop waiting: the host gives up, and keeps the memory until the device ends.
   */
  @Test
  void aSourceThatNeverEndsFailsBothEndsAtTheDeadline() {
    open(TransferOptions.DEFAULT.withDeadline(Duration.ofSeconds(3)));
    executors.start(2);
    exchange(1);
    Held held = held(7);
    Event sent = send(held, 1, 7);
    ReceivedBuffer received = receive(1, 0, 7).get(0);
    awaitBehind(0, 1);
    assertThat(failure(sent))
        .hasMessageContaining("executor 0/device 0")
        .hasMessageContaining("executor 1/device 0")
        .hasMessageContaining("its source (writing) was still RECORDED");
    assertThat(failure(received.event()))
        .hasMessageContaining("executor 0/device 0")
        .hasMessageContaining("executor 1/device 0");
    received.close();
    assertThat(held.written().state()).isEqualTo(Event.State.RECORDED);
    holds.release();
    await(held.written());
    exchange(8);
    assertThat(executors.get(0).statistics().cliques().created()).isEqualTo(2);
  }

  /** The lane gives up its work; enqueued work stays on the device. */
  @Test
  void aProducerThatIsGoneIsAnErrorOnBothSides() throws Exception {
    executors.start(2);
    exchange(1);
    CudaDevice gpu = TestGpus.cuda().open(TestGpus.ordinal(0));
    CudaLane lane = CudaLane.open(gpu, "gone", Duration.ofMillis(100), Lane.Priority.NORMAL);
    Held held = held(lane, 7);
    Event sent = send(held, 1, 7);
    ReceivedBuffer received = receive(1, 0, 7).get(0);
    awaitBehind(0, 1);
    Thread closer = new Thread(lane::close);
    closer.start();
    assertThat(failure(sent)).hasMessageContaining("did not end within");
    assertThat(received.event().state()).isEqualTo(Event.State.RECORDED);
    holds.release();
    assertThat(failure(received.event()))
        .hasMessageContaining("failed at executor 0/device 0: ")
        .hasMessageContaining("did not end within");
    received.close();
    closer.join(DEADLINE.toMillis());
    exchange(8);
    gpu.close();
  }

  /** No thread waits for the held work, except the executor's close, for a limited time. */
  @Test
  void aClosingExecutorFailsTransfersThatWaitOnTheDevice() throws Exception {
    executors.start(2);
    exchange(1);
    Held held = held(7);
    Event sent = send(held, 1, 7);
    ReceivedBuffer received = receive(1, 0, 7).get(0);
    awaitBehind(0, 1);
    Thread closer = new Thread(executors.get(0)::close);
    closer.start();
    assertThat(failure(sent)).hasMessageContaining("closed");
    assertThat(failure(received.event())).hasMessageContaining("executor 0/device 0");
    assertThat(held.written().state()).isEqualTo(Event.State.RECORDED);
    received.close();
    holds.release();
    closer.join(DEADLINE.toMillis());
    assertThat(closer.isAlive()).isFalse();
  }
}
