package io.weft.transfers;

import static io.weft.transfers.Content.await;
import static io.weft.transfers.Content.awaitRecorded;
import static io.weft.transfers.Content.failure;
import static io.weft.transfers.Content.ints;
import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.BufferOwner;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostEvent;
import io.weft.device.HostLane;
import io.weft.device.Lane;
import io.weft.memory.Memory;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** How transfers follow the events of their sources, and that every event ends. */
class DefinitionEventsTest extends TransferFixture {
  @Override
  Executors.Communicators communicators() {
    return (folder, executor) -> LocalCommunicator::create;
  }

  private Event send(TypedBuffer buffer, Event definition, long key) {
    return executors
        .get(0)
        .send(
            List.of(new SourceBuffer(device(0), buffer, definition)), List.of(device(1)), keys(key))
        .get(0);
  }

  /** Trap 5. */
  @Test
  void aTransferWhoseSourceIsNotRecordedWaitsAndNeverPasses() {
    executors.start(2);
    TypedBuffer buffer = ints(256, 1);
    HostEvent definition = new HostEvent("the work of a test");
    Event sent = send(buffer, definition, 1);
    ReceivedBuffer received = receive(1, 0, 1).get(0);
    // The other direction and later transfers there are not delayed.
    ReceivedBuffer back = receive(0, 1, 50).get(0);
    super.send(1, 0, 50).forEach(Content::await);
    checkAll(List.of(back), 50);
    assertThat(sent.state()).isEqualTo(Event.State.PENDING);
    assertThatThrownBy(() -> sent.awaitRecorded(Deadline.after(Duration.ZERO)))
        .isInstanceOf(EventTimeoutException.class);
    awaitRecorded(received.event());
    assertThat(received.event().state()).isEqualTo(Event.State.RECORDED);

    definition.record();
    awaitRecorded(sent);
    assertThat(sent.state()).isEqualTo(Event.State.RECORDED);
    assertThat(received.event().state()).isEqualTo(Event.State.RECORDED);

    definition.complete();
    checkAll(List.of(received), 1);
    await(sent);
    assertThat(executors.count(0, TransferCounter.DEFINITION_WAITS)).isEqualTo(1);
    assertThat(executors.count(0, TransferCounter.DEFINITION_WAIT_NANOS)).isPositive();
  }

  /** Neither the caller nor the launcher waits for recorded work; the work's bytes arrive. */
  @Test
  void aSendIsEnqueuedBehindWorkThatRunsOnALane() throws Exception {
    executors.start(2);
    TypedBuffer buffer = ints(256, 1);
    TypedBuffer late = ints(256, 2);
    CountDownLatch go = new CountDownLatch(1);
    try (Lane lane = HostLane.open("compute", DEADLINE)) {
      Event work =
          lane.submit(
              "slow work",
              () -> {
                assertThat(go.await(60, TimeUnit.SECONDS)).isTrue();
                Memory.copy(late.address(), buffer.address(), late.bytes());
              });
      Event sent = send(buffer, work, 1);
      awaitRecorded(sent);
      assertThat(sent.state()).isEqualTo(Event.State.RECORDED);
      ReceivedBuffer received = receive(1, 0, 1).get(0);
      awaitRecorded(received.event());
      assertThat(received.event().state()).isEqualTo(Event.State.RECORDED);
      go.countDown();
      await(received.event());
      check(received.buffer(), 2);
      received.close();
      await(sent);
    }
  }

  /** A failure long after the enqueue reaches the transfer as the same exception. */
  @Test
  void aSourceThatFailsLateFailsTheTransferWithExactlyThatError() {
    executors.start(2);
    HostEvent definition = new HostEvent("the work of a test");
    definition.record();
    Event sent = send(ints(256, 1), definition, 1);
    ReceivedBuffer received = receive(1, 0, 1).get(0);
    List<Event> behind = super.send(0, 1, 2);
    ReceivedBuffer next = receive(1, 0, 2).get(0);
    awaitRecorded(sent);
    IOException cause = new IOException("the disk is gone");
    definition.fail(cause);
    assertThat(failure(sent)).isSameAs(cause);
    assertThat(failure(received.event()))
        .hasMessageContaining("the disk is gone")
        .hasMessageContaining("executor 0/device 0")
        .hasMessageContaining("executor 1/device 0");
    received.close();
    checkAll(List.of(next), 2);
    behind.forEach(Content::await);
    assertThat(executors.get(1).statistics().cliques().created()).isEqualTo(1);
  }

  @Test
  void aSourceThatHadFailedBeforeFailsTheTransferToo() {
    executors.start(2);
    HostEvent definition = new HostEvent("the work of a test");
    IllegalStateException cause = new IllegalStateException("never began");
    definition.fail(cause);
    assertThat(failure(send(ints(256, 1), definition, 1))).isSameAs(cause);
    ReceivedBuffer received = receive(1, 0, 1).get(0);
    assertThat(failure(received.event())).hasMessageContaining("never began");
    received.close();
  }

  /** An empty text would mean success to the peer. */
  @Test
  void aSourceThatFailsWithoutAMessageFailsTheTransferToo() {
    executors.start(2);
    HostEvent definition = new HostEvent("the work of a test");
    Event sent = send(ints(256, 1), definition, 1);
    ReceivedBuffer received = receive(1, 0, 1).get(0);
    definition.fail(new IllegalStateException(""));
    assertThat(failure(sent)).hasMessage("");
    assertThat(failure(received.event())).hasMessageContaining("IllegalStateException");
    received.close();
  }

  /** Trap 6: the producer of the source has ended. */
  @Test
  void aDroppedProducerIsAnErrorOnBothSides() {
    executors.start(2);
    Event sent;
    try (HostEvent definition = new HostEvent("the work of a test")) {
      sent = send(ints(256, 1), definition, 1);
    }
    ReceivedBuffer received = receive(1, 0, 1).get(0);
    assertThat(failure(sent)).hasMessageContaining("dropped by its producer");
    assertThat(failure(received.event())).hasMessageContaining("dropped by its producer");
    received.close();
  }

  /** Trap 6: a transfer that is cancelled before and after the launch of its batch. */
  @Test
  void aCancelledTransferIsAnErrorOnBothSides() {
    executors.start(2);
    var shape = shapes(1).get(0);
    List<DeferredTransfer> placed =
        executors.get(0).place(List.of(placement(0, 0, 1, shape, 1), placement(0, 0, 1, shape, 2)));
    placed.get(0).close();
    assertThat(failure(placed.get(0).event())).hasMessageContaining("dropped by its producer");
    ReceivedBuffer cancelled = receive(1, 0, 1).get(0);
    ReceivedBuffer whole = receive(1, 0, 2).get(0);
    await(placed.get(1).event());
    checkAll(List.of(whole), 2);
    assertThat(failure(cancelled.event()))
        .hasMessageContaining("failed at executor 0/device 0")
        .hasMessageContaining("dropped by its producer");
    cancelled.close();

    HostEvent definition = new HostEvent("the work of a test");
    SourceBuffer source = new SourceBuffer(device(0), ints(256, 3), definition);
    DeferredTransfer launched =
        executors.get(0).place(List.of(ArrayPlacement.of(source, device(1), shape, 3))).get(0);
    var unused = launched.event().toFuture();
    launched.close();
    ReceivedBuffer waits = receive(1, 0, 3).get(0);
    assertThat(failure(launched.event())).hasMessageContaining("dropped by its producer");
    assertThat(failure(waits.event())).hasMessageContaining("dropped by its producer");
    waits.close();
    exchange(4);
    assertThat(executors.get(1).statistics().cliques().created()).isEqualTo(1);
  }

  /** Trap 6: the third destination is unknown, so nothing is sent and every use ends. */
  @Test
  void anEarlyReturnInMidLoopEndsWhatWasPrepared() {
    executors.start(2);
    List<Event> uses = new ArrayList<>();
    List<SourceBuffer> sources = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      TypedBuffer memory = ints(256, i);
      BufferOwner owner =
          new BufferOwner() {
            @Override
            public long address() {
              return memory.address();
            }

            @Override
            public long bytes() {
              return memory.bytes();
            }

            @Override
            public void usedUntil(Event event) {
              uses.add(event);
            }
          };
      sources.add(SourceBuffer.of(device(0), TypedBuffer.of(owner, 0, DataType.INT32, 256)));
    }
    assertThatThrownBy(
            () ->
                executors
                    .get(0)
                    .send(
                        sources,
                        List.of(device(1), device(1), new DeviceId("9", 0)),
                        keys(1, 2, 3)))
        .isInstanceOf(TransferException.class)
        .hasMessage("executor 0 does not find executor 9/device 0: it is unknown");
    assertThat(uses).hasSize(2).allMatch(use -> use.state() == Event.State.COMPLETE);
    assertThatThrownBy(
            () ->
                executors
                    .get(0)
                    .receive(
                        device(0),
                        shapes(3),
                        List.of(device(1), device(1), new DeviceId("9", 0)),
                        keys(1, 2, 3)))
        .isInstanceOf(TransferException.class);
    assertThat(executors.get(0).statistics().buffers().out()).isZero();
    exchange(4);
  }

  /**
   * Trap 8: the source ends just before or just after each look at it, by the launcher and by the
   * lane, also while the lane is about to rest. A first run without such an end counts the looks.
   */
  @Test
  void aSourceThatEndsBetweenAnyTwoLooksIsNotMissed() {
    executors.start(2);
    int looks = sendWhoseSourceEnds(1000, 0, false).calls();
    assertThat(looks).isGreaterThan(5);
    AtomicInteger forced = new AtomicInteger();
    for (int look = 1; look <= looks; look++) {
      for (boolean after : new boolean[] {false, true}) {
        int key = 2000 + 4 * look + (after ? 2 : 0);
        HookedEvent source = sendWhoseSourceEnds(key, look, after);
        forced.addAndGet(source.calls() >= look ? 1 : 0);
      }
    }
    assertThat(forced.get()).as("forced ends").isGreaterThan(looks);
  }

  /**
   * Sends an array in one batch with another one, which lets the lane run meanwhile. Everything
   * arrives.
   *
   * @param look at which the source ends; 0 for none, then it ends when the lane rests
   */
  private HookedEvent sendWhoseSourceEnds(int key, int look, boolean after) {
    HostEvent work = new HostEvent("the work of a test");
    HookedEvent source =
        new HookedEvent(
            work,
            call -> endsAt(work, call == look && !after),
            call -> endsAt(work, call == look && after));
    List<SourceBuffer> sources =
        List.of(
            SourceBuffer.of(device(0), ints(256, key)),
            new SourceBuffer(device(0), ints(256, key + 1), source));
    List<Event> sent = executors.get(0).send(sources, times(2, device(1)), keys(key, key + 1));
    List<ReceivedBuffer> received = receive(1, 0, key, key + 1);
    await(sent.get(0));
    // Lets the lane look for more work once again.
    List<ReceivedBuffer> back = receive(0, 1, key);
    super.send(1, 0, key).forEach(Content::await);
    checkAll(back, key);
    endsAt(work, true);
    checkAll(received, key, key + 1);
    await(sent.get(1));
    return source;
  }

  /**
   * Ends the source on another thread, and goes on when that thread is done or waits for a lock of
   * this one.
   */
  private static void endsAt(HostEvent work, boolean now) {
    if (!now) {
      return;
    }
    Thread other =
        new Thread(
            () -> {
              work.record();
              work.complete();
            },
            "the end of a source");
    other.start();
    while (other.isAlive() && other.getState() != Thread.State.BLOCKED) {
      Thread.onSpinWait();
    }
  }
}
