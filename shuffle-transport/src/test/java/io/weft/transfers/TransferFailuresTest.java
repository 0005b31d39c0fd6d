package io.weft.transfers;

import static io.weft.transfers.Content.await;
import static io.weft.transfers.Content.failure;
import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.Communicator;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.transfers.Manifest.ManifestEntry;
import io.weft.transfers.TransferWire.CommunicatorWire;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.assertj.core.api.Assertions;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

/** Failures of transfers under way: every event ends, names both ends, and the pair works again. */
class TransferFailuresTest extends TransferFixture {
  @Override
  Executors.Communicators communicators() {
    return (folder, executor) ->
        new HostCommunicators(HostOptions.defaults().withFolder(folder.resolve("shared")));
  }

  private static void assertNamesBoth(Throwable failure) {
    assertThat(failure)
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("executor 0/device 0")
        .hasMessageContaining("executor 1/device 0");
  }

  /** Also trap 11: one end aborts the communicator, and both create a new one. */
  @Test
  void aTransferThatThePeerNeverOffersFailsAtTheDeadline() {
    open(TransferOptions.DEFAULT.withDeadline(Duration.ofSeconds(6)));
    executors.start(2);
    exchange(1);
    Event sent = send(0, 1, 2).get(0);
    Throwable failure = failure(sent);
    assertNamesBoth(failure);
    assertThat(failure).hasMessageContaining("key 2");
    exchange(3);
    assertThat(executors.get(0).statistics().cliques().created()).isEqualTo(2);
    assertThat(executors.get(1).statistics().cliques().created()).isEqualTo(2);
  }

  @Test
  void aTransferWhoseSourceIsNeverRecordedFailsAtTheDeadline() {
    open(TransferOptions.DEFAULT.withDeadline(Duration.ofSeconds(2)));
    executors.start(2);
    SourceBuffer never =
        new SourceBuffer(
            device(0), Content.ints(256, 1), new HostEvent("the work that never comes"));
    Event sent = executors.get(0).send(List.of(never), List.of(device(1)), keys(1)).get(0);
    Throwable failure = failure(sent);
    assertNamesBoth(failure);
    assertThat(failure)
        .hasMessageContaining("did not end within 2 s")
        .hasMessageContaining("its source (the work that never comes) was still PENDING");
  }

  /** A task ends after its peer has offered, and both run again with other keys. */
  @Test
  void aTransferThatFailedAtOneEndDoesNotBlockOthers() {
    executors.start(2);
    exchange(1);
    for (long key = 2; key < 5; key++) {
      HostEvent work = new HostEvent("the work of attempt " + key);
      SourceBuffer source = new SourceBuffer(device(0), Content.ints(256, key), work);
      Event sent = executors.get(0).send(List.of(source), List.of(device(1)), keys(key)).get(0);
      work.fail(new IllegalStateException("the attempt was ended"));
      assertThat(failure(sent)).hasMessageContaining("the attempt was ended");
      exchange(100 * key);
    }
    assertThat(executors.get(0).statistics().cliques().created()).isEqualTo(1);
  }

  /** A wire that tests can break. */
  static class OwnWire implements TransferWire {
    private final TransferWire wire;

    OwnWire(Communicator communicator) {
      this.wire = new CommunicatorWire(communicator);
    }

    @Override
    public List<ManifestEntry> exchange(Manifest mine) {
      return wire.exchange(mine);
    }

    @Override
    public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
      wire.move(sends, receives);
    }

    @Override
    public Optional<RuntimeException> failure() {
      return wire.failure();
    }

    @Override
    public void abort(String reason) {
      wire.abort(reason);
    }
  }

  /** A wire that fails at its first move of payload. */
  private static final class BreakingWire extends OwnWire {
    private final AtomicInteger toBreak;

    BreakingWire(Communicator communicator, AtomicInteger toBreak) {
      super(communicator);
      this.toBreak = toBreak;
    }

    @Override
    public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
      if (!sends.isEmpty() && toBreak.getAndDecrement() > 0) {
        throw new IllegalStateException("the cable was cut");
      }
      super.move(sends, receives);
    }
  }

  /** A wire that makes its lane check the failure just when the wire breaks. */
  private static final class LateWire extends OwnWire {
    private final CountDownLatch checked = new CountDownLatch(1);
    private final CountDownLatch aborted = new CountDownLatch(1);
    private volatile boolean wanted;

    LateWire(Communicator communicator) {
      super(communicator);
    }

    @Override
    public Optional<RuntimeException> failure() {
      if (wanted) {
        checked.countDown();
        try {
          assertThat(aborted.await(60, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
      }
      return super.failure();
    }

    @Override
    public void abort(String reason) {
      super.abort(reason);
      aborted.countDown();
    }
  }

  /** A wire that fails, and then cannot be aborted or closed either. */
  private static final class StubbornWire extends OwnWire {
    private final AtomicInteger toBreak;

    StubbornWire(Communicator communicator, AtomicInteger toBreak) {
      super(communicator);
      this.toBreak = toBreak;
    }

    @Override
    public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
      breakIf(3);
      super.move(sends, receives);
    }

    @Override
    public void abort(String reason) {
      breakIf(2);
      super.abort(reason);
    }

    @Override
    public void close() {
      breakIf(1);
      super.close();
    }

    private void breakIf(int left) {
      if (toBreak.compareAndSet(left, left - 1)) {
        throw new IllegalStateException("the wire is stubborn");
      }
    }
  }

  /** The lane goes on with a new communicator, and the transfers of the old one have ended. */
  @Test
  void aWireThatCannotBeAbortedOrClosedEndsItsTransfers() {
    AtomicInteger toBreak = new AtomicInteger(3);
    executors
        .wires(
            communicator ->
                communicator.rank() == 0
                    ? new StubbornWire(communicator, toBreak)
                    : new OwnWire(communicator))
        .start(2);
    List<Event> sent = send(0, 1, 1, 2);
    List<ReceivedBuffer> received = receive(1, 0, 1, 2);
    sent.forEach(event -> assertThat(failure(event)).hasMessageContaining("the wire is stubborn"));
    received.forEach(
        buffer -> {
          assertNamesBoth(failure(buffer.event()));
          buffer.close();
        });
    assertThat(toBreak).hasValue(0);
    exchange(3);
  }

  /** Trap 7: no failed transfer reports success, and the next one works. */
  @Test
  void aFailureWhilePayloadMovesFailsTheGroupOnBothSides() {
    AtomicInteger toBreak = new AtomicInteger(1);
    executors.wires(communicator -> new BreakingWire(communicator, toBreak)).start(2);
    List<Event> sent = send(0, 1, 1, 2);
    List<ReceivedBuffer> received = receive(1, 0, 1, 2);
    for (int i = 0; i < 2; i++) {
      Throwable here = failure(sent.get(i));
      assertNamesBoth(here);
      assertThat(here).hasMessageContaining("the cable was cut");
      Throwable there = failure(received.get(i).event());
      assertNamesBoth(there);
      assertThat(there).hasMessageContaining("the cable was cut");
      received.get(i).close();
    }
    exchange(3);
    assertThat(executors.get(0).statistics().cliques().created()).isEqualTo(2);
    assertThat(executors.count(0, TransferCounter.GROUPS)).isEqualTo(1);
    assertThat(executors.get(1).statistics().buffers().out()).isZero();
  }

  /** Listeners run without a lock, so that they can start transfers. */
  @Test
  void aListenerOfAFailureMayStartTransfersAtOnce() throws Exception {
    CountDownLatch released = new CountDownLatch(1);
    executors
        .network(
            (key, rank) -> {
              boolean unused = awaitQuietly(released);
              throw new IOException("there is no rendezvous");
            })
        .start(2);
    CompletableFuture<Boolean> started = new CompletableFuture<>();
    Event first = send(0, 1, 1).get(0);
    first.whenDone(
        failure -> {
          Event second = send(0, 1, 2).get(0);
          started.complete(Assertions.catchThrowable(() -> awaitShortly(second)) == null);
        });
    released.countDown();
    assertThat(started.get(60, TimeUnit.SECONDS)).as("the second came to its clique").isTrue();
    assertThat(failure(first)).hasMessageContaining("there is no rendezvous");
  }

  static boolean awaitQuietly(CountDownLatch latch) {
    try {
      return latch.await(60, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private static void awaitShortly(Event event) {
    event.awaitRecorded(Deadline.after(Duration.ofSeconds(20)));
  }

  /** The loss of an executor fails waiting and later transfers with it. */
  @Test
  void aFailedIncarnationFailsItsTransfersAndNoOthers() {
    executors.start(3);
    exchange(1);
    Event toOne = send(0, 1, 2).get(0);
    Event toTwo = send(0, 2, 2).get(0);
    executors.get(0).fail("1", "first", "failed by the test");
    Throwable failure = failure(toOne);
    assertNamesBoth(failure);
    assertThat(failure).hasMessageContaining("failed by the test");
    Throwable later = failure(send(0, 1, 3).get(0));
    assertNamesBoth(later);
    assertThat(later).hasMessageContaining("failed by the test");
    checkAll(receive(2, 0, 2), 2);
    await(toTwo);
    assertThat(executors.get(0).statistics().cliques().aborted()).isEqualTo(1);
  }

  /** Trap 12: a new incarnation with the same id gets its own communicators. */
  @Test
  void aRestartedExecutorGetsANewCommunicator() {
    executors.start(2);
    exchange(1);
    executors.get(1).close();
    executors.arena(1).close();
    executors.get(0).fail("1", "first", "it was restarted");
    DeviceTransfers again = executors.start(1, "second", 1);
    exchange(2);
    assertThat(executors.get(0).statistics().cliques().created()).isEqualTo(2);
    assertThat(executors.get(0).statistics().cliques().aborted()).isEqualTo(1);
    assertThat(again.statistics().cliques().created()).isEqualTo(1);
  }

  /** The round finds its wire broken and must not wait for the peer again. */
  @Test
  void aRoundThatBeginsWhileTheExecutorClosesIsTheLast() throws Exception {
    List<LateWire> wires = new CopyOnWriteArrayList<>();
    executors
        .wires(
            communicator -> {
              LateWire wire = new LateWire(communicator);
              wires.add(wire);
              return wire;
            })
        .start(1);
    executors.wires(CommunicatorWire::new).start(1);
    exchange(1);
    assertThat(wires).hasSize(1);
    wires.get(0).wanted = true;
    Event sent = send(0, 1, 2).get(0);
    ReceivedBuffer received = receive(0, 1, 3).get(0);
    assertThat(wires.get(0).checked.await(60, TimeUnit.SECONDS)).isTrue();
    executors.get(0).close();
    assertNamesBoth(failure(sent));
    assertNamesBoth(failure(received.event()));
    received.close();
    assertThat(executors.get(0).statistics().buffers().out()).isZero();
  }

  /** The peer never joins the rendezvous. */
  @Test
  void anExecutorThatClosesWaitsForNoPeer() {
    executors.start(2);
    ReceivedBuffer received = receive(0, 1, 3).get(0);
    Awaitility.await()
        .atMost(DEADLINE)
        .until(() -> executors.get(0).statistics().cliques().requests() > 0);
    executors.get(0).close();
    assertNamesBoth(failure(received.event()));
    received.close();
    assertThat(executors.get(0).statistics().buffers().out()).isZero();
  }

  /** A launch that fails in its middle: its batch ends, and other cliques get their transfers. */
  @Test
  void aBatchEndsWhateverIsThrown() {
    executors.start(3);
    OutOfMemoryError error = new OutOfMemoryError("unable to create native thread");
    SourceBuffer explodes =
        new SourceBuffer(
            device(0),
            Content.ints(256, 1),
            new HookedEvent(
                new HostEvent("work"),
                call -> {
                  if (call == 1) {
                    throw error;
                  }
                },
                call -> {}));
    List<Throwable> uncaught = new CopyOnWriteArrayList<>();
    Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
    Thread.setDefaultUncaughtExceptionHandler((thread, failure) -> uncaught.add(failure));
    try {
      List<Event> sent =
          executors
              .get(0)
              .send(
                  List.of(explodes, sources(0, 2).get(0)),
                  List.of(device(1), device(2)),
                  keys(1, 2));
      Throwable failure = failure(sent.get(0));
      assertNamesBoth(failure);
      assertThat(failure).hasMessageContaining("unable to create native thread");
      checkAll(receive(2, 0, 2), 2);
      await(sent.get(1));
      Awaitility.await("the error is not swallowed")
          .untilAsserted(() -> assertThat(uncaught).containsExactly(error));
    } finally {
      Thread.setDefaultUncaughtExceptionHandler(before);
    }
  }

  /**
   * Trap 22: an executor closes while its payload moves. The wire still uses the memory then, and
   * so does a listener of the failure.
   */
  @Test
  void closingKeepsTheMemoryOfPayloadThatMoves() throws Exception {
    CountDownLatch moving = new CountDownLatch(1);
    CountDownLatch aborted = new CountDownLatch(1);
    AtomicInteger outWhileMoving = new AtomicInteger(-1);
    executors
        .wires(
            communicator ->
                new OwnWire(communicator) {
                  @Override
                  public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
                    moving.countDown();
                    awaitQuietly(aborted);
                    // The launchers are closed, and every event has failed.
                    receives.forEach(buffer -> Content.fill(buffer, 9));
                    outWhileMoving.set((int) executors.get(0).statistics().buffers().out());
                    super.move(sends, receives);
                  }

                  @Override
                  public void abort(String reason) {
                    super.abort(reason);
                    aborted.countDown();
                  }
                })
        .start(1);
    executors.wires(CommunicatorWire::new).start(1);
    ReceivedBuffer received = receive(0, 1, 2).get(0);
    AtomicInteger outInListener = new AtomicInteger(-1);
    received
        .event()
        .whenDone(
            failure -> {
              Content.fill(received.buffer(), 8);
              outInListener.set((int) executors.get(0).statistics().buffers().out());
            });
    Event sent = send(1, 0, 2).get(0);
    assertThat(moving.await(60, TimeUnit.SECONDS)).isTrue();
    received.close();
    executors.get(0).close();
    assertThat(failure(received.event())).hasMessageContaining("key 2");
    // A sender may be done before its peer closes.
    boolean unused = Content.succeeds(sent);
    assertThat(outInListener).hasValue(1);
    assertThat(outWhileMoving).hasValue(1);
    assertThat(executors.get(0).statistics().buffers().out()).isZero();
    assertThat(executors.arena(0).statistics().extents()).isZero();
  }

  /** Trap 22: launchers, lanes, callbacks, memory. */
  @Test
  void closingEndsEveryEventAndEveryThread() {
    executors.start(2);
    exchange(1);
    List<Event> sent = send(0, 1, 2, 3);
    ReceivedBuffer received = receive(0, 1, 4).get(0);
    List<DeferredTransfer> deferred =
        executors.get(0).place(List.of(placement(0, 0, 1, shapes(1).get(0), 5)));
    executors.get(0).close();
    sent.forEach(event -> assertNamesBoth(failure(event)));
    assertNamesBoth(failure(received.event()));
    assertThat(failure(deferred.get(0).event())).hasMessageContaining("dropped");
    received.close();
    assertThat(executors.get(0).statistics().buffers().out()).isZero();
    assertThat(executors.arena(0).statistics().extents()).isZero();
    assertThatThrownBy(() -> send(0, 1, 6)).hasMessageContaining("closed");
    executors.get(1).close();
    Awaitility.await()
        .atMost(DEADLINE)
        .untilAsserted(
            () ->
                assertThat(Thread.getAllStackTraces().keySet())
                    .extracting(Thread::getName)
                    .noneMatch(name -> name.startsWith("weft-transfer"))
                    .noneMatch(name -> name.startsWith("weft-lane-transfers")));
  }

  /** Transfers have their own lanes, with the highest priority. */
  @Test
  void lanesOfTransfersHaveTheHighestPriority() {
    executors.start(2);
    exchange(1);
    Awaitility.await("the end of the lanes of other tests")
        .untilAsserted(
            () ->
                assertThat(Thread.getAllStackTraces().keySet())
                    .filteredOn(thread -> thread.getName().startsWith("weft-lane-transfers-"))
                    .hasSize(2)
                    .allMatch(thread -> thread.getPriority() == Thread.MAX_PRIORITY));
  }
}
