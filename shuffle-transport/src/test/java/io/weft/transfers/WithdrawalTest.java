package io.weft.transfers;

import static io.weft.transfers.Content.await;
import static io.weft.transfers.Content.failure;
import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.transfers.Manifest.ManifestEntry;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A transfer that one end gives up is never met by a later one, and breaks no communicator. */
class WithdrawalTest extends TransferFixture {
  private static final int RACES = 300;
  private static final long HELD = 2;

  @Override
  Executors.Communicators communicators() {
    return (folder, executor) ->
        new HostCommunicators(HostOptions.defaults().withFolder(folder.resolve("shared")));
  }

  private void startPair() {
    executors.start(2);
    exchange(1);
  }

  /** Waits until the executor has begun a round that only a transfer of the peer can end. */
  private void awaitRound(int executor) {
    long rounds = executors.count(1 - executor, TransferCounter.MANIFESTS);
    Awaitility.await("a round of executor " + executor)
        .atMost(DEADLINE)
        .until(() -> executors.count(executor, TransferCounter.MANIFESTS) > rounds);
  }

  /** Waits until both executors have offered a receive that the other does not answer. */
  private List<ReceivedBuffer> bothWait() {
    ReceivedBuffer here = receive(0, 1, 50).get(0);
    ReceivedBuffer there = receiveOfTask(2).get(0);
    long rounds = executors.count(0, TransferCounter.MANIFESTS);
    Awaitility.await("rounds in which both ends wait")
        .atMost(DEADLINE)
        .until(() -> executors.count(0, TransferCounter.MANIFESTS) > rounds + 2);
    return List.of(here, there);
  }

  /** A receive from executor 0 by a task on executor 1. */
  private List<ReceivedBuffer> receiveOfTask(long key) {
    return executors
        .get(1)
        .ofAttempt(new TransferAttempt(7, 0))
        .receive(device(1), shapes(1), List.of(device(0)), keys(key));
  }

  private void assertOneCommunicatorAndNoBuffer() {
    for (int executor = 0; executor < 2; executor++) {
      int each = executor;
      assertThat(executors.get(executor).statistics().cliques().created()).isEqualTo(1);
      Awaitility.await("no buffer is out")
          .atMost(DEADLINE)
          .until(() -> executors.get(each).statistics().buffers().out() == 0);
    }
  }

  /** The first attempt of a task has left a receive; its peer had not started its own end. */
  @ParameterizedTest
  @ValueSource(longs = {2, 3})
  void aRetryNeverMeetsAWithdrawnReceive(long retriedKey) {
    startPair();
    ReceivedBuffer first = receiveOfTask(2).get(0);
    awaitRound(1);
    first.close();
    assertThat(failure(first.event())).hasMessageContaining("key 2");
    List<ReceivedBuffer> second = receiveOfTask(retriedKey);
    send(0, 1, retriedKey).forEach(Content::await);
    checkAll(second, retriedKey);
    exchange(4);
    assertOneCommunicatorAndNoBuffer();
  }

  @ParameterizedTest
  @ValueSource(longs = {2, 3})
  void aRetryNeverMeetsAWithdrawnSend(long retriedKey) {
    startPair();
    DeviceTransfers attempt = executors.get(0).ofAttempt(new TransferAttempt(7, 0));
    Event first = attempt.send(sources(0, 2), List.of(device(1)), keys(2)).get(0);
    awaitRound(0);
    attempt.withdraw("the task was killed");
    assertThat(failure(first)).hasMessageContaining("was withdrawn: the task was killed");
    List<Event> second = send(0, 1, retriedKey);
    List<ReceivedBuffer> received = receive(1, 0, retriedKey);
    checkAll(received, retriedKey);
    second.forEach(Content::await);
    exchange(4);
    assertOneCommunicatorAndNoBuffer();
  }

  /** The peer already has the offer, so it must be told. */
  @ParameterizedTest
  @ValueSource(longs = {2, 3})
  void aRetryNeverMeetsAWithdrawnReceiveThatThePeerKnows(long retriedKey) {
    startPair();
    List<ReceivedBuffer> waiting = bothWait();
    waiting.get(1).close();
    List<ReceivedBuffer> second = receiveOfTask(retriedKey);
    send(0, 1, retriedKey).forEach(Content::await);
    checkAll(second, retriedKey);
    send(1, 0, 50).forEach(Content::await);
    checkAll(waiting.subList(0, 1), 50);
    assertOneCommunicatorAndNoBuffer();
  }

  @Test
  void bothEndsMayWithdrawAtOnce() {
    startPair();
    bothWait().forEach(ReceivedBuffer::close);
    exchange(3);
    List<ReceivedBuffer> back = receive(0, 1, 51);
    send(1, 0, 51).forEach(Content::await);
    checkAll(back, 51);
    assertOneCommunicatorAndNoBuffer();
  }

  /** Its task goes on while the other one starts again with the same key. */
  @Test
  void thePeersEndWaitsForTheNextAttempt() {
    startPair();
    ReceivedBuffer first = receiveOfTask(2).get(0);
    awaitRound(1);
    first.close();
    Event sent = send(0, 1, 2).get(0);
    List<ReceivedBuffer> back = receive(0, 1, 50);
    send(1, 0, 50).forEach(Content::await);
    checkAll(back, 50);
    assertThat(sent.state()).isEqualTo(Event.State.RECORDED);
    checkAll(receiveOfTask(2), 2);
    await(sent);
    exchange(3);
    assertOneCommunicatorAndNoBuffer();
  }

  /** As {@link #thePeersEndWaitsForTheNextAttempt}, with a placement closed before its offer. */
  @Test
  void thePeersEndWaitsForTheAttemptAfterAClosedPlacement() {
    startPair();
    DeferredTransfer first =
        executors
            .get(1)
            .ofAttempt(new TransferAttempt(7, 0))
            .place(List.of(ArrayPlacement.of(device(0), device(1), shapes(1).get(0), 2)))
            .get(0);
    first.close();
    var unused = first.event().toFuture();
    Event sent = send(0, 1, 2).get(0);
    List<ReceivedBuffer> back = receive(0, 1, 50);
    send(1, 0, 50).forEach(Content::await);
    checkAll(back, 50);
    assertThat(sent.state()).isEqualTo(Event.State.RECORDED);
    checkAll(receiveOfTask(2), 2);
    await(sent);
    exchange(3);
    assertOneCommunicatorAndNoBuffer();
  }

  /** For example a reader of GPU blocks, whose next request has other keys. */
  @Test
  void thePeersEndFailsAtOnceIfTheTransferIsOfNoTask() {
    startPair();
    ReceivedBuffer first = receive(1, 0, 2).get(0);
    awaitRound(1);
    first.close();
    Event sent = send(0, 1, 2).get(0);
    assertThat(failure(sent))
        .hasMessageContaining("failed at executor 1/device 0")
        .hasMessageContaining("its holder has closed it");
    exchange(3);
    assertOneCommunicatorAndNoBuffer();
  }

  /** It is withdrawn when its end has made its offers, and the peer starts before its own. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aWithdrawalBetweenTheOffersOfBothEndsIsNotMet(boolean retriesBefore) throws Exception {
    AtomicBoolean armed = new AtomicBoolean();
    CountDownLatch peerStarts = new CountDownLatch(1);
    CountDownLatch offered = new CountDownLatch(1);
    CountDownLatch withdrawn = new CountDownLatch(1);
    executors
        .wires(
            communicator ->
                new TransferFailuresTest.OwnWire(communicator) {
                  private final boolean comesLate = communicator.rank() == 0;

                  @Override
                  public List<ManifestEntry> exchange(Manifest mine) {
                    boolean held = mine.entries().stream().anyMatch(entry -> entry.key() == HELD);
                    if (held && !comesLate) {
                      offered.countDown();
                      TransferFailuresTest.awaitQuietly(withdrawn);
                    }
                    List<ManifestEntry> theirs = super.exchange(mine);
                    if (comesLate && armed.get()) {
                      TransferFailuresTest.awaitQuietly(peerStarts);
                    }
                    return theirs;
                  }
                })
        .start(2);
    exchange(1);
    List<ReceivedBuffer> back = receive(0, 1, 50);
    awaitRound(0);
    armed.set(true);
    ReceivedBuffer first = receiveOfTask(HELD).get(0);
    assertThat(offered.await(60, TimeUnit.SECONDS)).isTrue();
    first.close();
    List<ReceivedBuffer> second = retriesBefore ? receiveOfTask(HELD) : List.of();
    Event sent = send(0, 1, HELD).get(0);
    sent.awaitRecorded(Deadline.after(DEADLINE));
    peerStarts.countDown();
    withdrawn.countDown();
    second = retriesBefore ? second : receiveOfTask(HELD);
    checkAll(second, HELD);
    await(sent);
    send(1, 0, 50).forEach(Content::await);
    checkAll(back, 50);
    exchange(3);
    assertOneCommunicatorAndNoBuffer();
  }

  /** The next attempt shows that no receive will take the array. */
  @Test
  void thePeersEndFailsIfTheNextAttemptHasAnotherKey() {
    startPair();
    ReceivedBuffer first = receiveOfTask(2).get(0);
    awaitRound(1);
    first.close();
    Event sent = send(0, 1, 2).get(0);
    List<ReceivedBuffer> second = receiveOfTask(3);
    assertThat(failure(sent))
        .hasMessageContaining("failed at executor 1/device 0")
        .hasMessageContaining("its holder has closed it");
    send(0, 1, 3).forEach(Content::await);
    checkAll(second, 3);
    assertOneCommunicatorAndNoBuffer();
  }

  /** The memory of a matched transfer belongs to the wire, also if its holder gives it up. */
  @Test
  void aWithdrawalAfterTheMatchRunsToItsEnd() throws Exception {
    CountDownLatch moving = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    executors
        .wires(
            communicator ->
                new TransferFailuresTest.OwnWire(communicator) {
                  @Override
                  public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
                    if (!receives.isEmpty()) {
                      moving.countDown();
                      TransferFailuresTest.awaitQuietly(go);
                    }
                    super.move(sends, receives);
                  }
                })
        .start(2);
    List<Event> sent = send(0, 1, 2);
    ReceivedBuffer received = receive(1, 0, 2).get(0);
    TypedBuffer buffer = received.buffer();
    assertThat(moving.await(60, TimeUnit.SECONDS)).isTrue();
    received.close();
    try (TransferBuffer other = executors.get(1).buffers().take(1024)) {
      assertThat(other.address()).isNotEqualTo(buffer.address());
    }
    assertThat(executors.get(1).statistics().buffers().out()).isEqualTo(1);
    go.countDown();
    sent.forEach(Content::await);
    exchange(3);
    assertOneCommunicatorAndNoBuffer();
  }

  /** In both orders the pair works, with the same communicator. */
  @Test
  void aWithdrawalThatCrossesTheMatchLeavesThePairInOrder() throws Exception {
    startPair();
    ExecutorService other = java.util.concurrent.Executors.newSingleThreadExecutor();
    CyclicBarrier barrier = new CyclicBarrier(2);
    try {
      for (long round = 0; round < RACES; round++) {
        long key = 10 + 2 * round;
        ReceivedBuffer first = receive(1, 0, key).get(0);
        if (round % 2 == 0) {
          awaitRound(1);
        }
        Future<?> closed =
            other.submit(
                () -> {
                  barrier.await(60, TimeUnit.SECONDS);
                  first.close();
                  return null;
                });
        barrier.await(60, TimeUnit.SECONDS);
        Event sent = send(0, 1, key).get(0);
        closed.get(60, TimeUnit.SECONDS);
        exchange(key + 1);
        boolean unused = Content.succeeds(sent);
      }
    } finally {
      other.shutdownNow();
    }
    assertOneCommunicatorAndNoBuffer();
  }

  /** A task of an older attempt still runs and has withdrawn nothing. */
  @ParameterizedTest
  @ValueSource(longs = {2, 3})
  void aTransferOfAnOlderAttemptIsStaleAtItsOwnEnd(long retriedKey) {
    startPair();
    DeviceTransfers old = executors.get(1).ofAttempt(new TransferAttempt(7, 0));
    ReceivedBuffer stale = old.receive(device(1), shapes(1), List.of(device(0)), keys(2)).get(0);
    awaitRound(1);
    Event sent =
        executors
            .get(0)
            .ofAttempt(new TransferAttempt(7, 1))
            .send(sources(0, retriedKey), List.of(device(1)), keys(retriedKey))
            .get(0);
    assertThat(failure(stale.event()))
        .hasMessageContaining("belongs to attempt 0 of stage 7")
        .hasMessageContaining("executor 0/device 0 is in attempt 1 of stage 7");
    stale.close();
    DeviceTransfers retried = executors.get(1).ofAttempt(new TransferAttempt(7, 1));
    List<ReceivedBuffer> received =
        retried.receive(device(1), shapes(1), List.of(device(0)), keys(retriedKey));
    checkAll(received, retriedKey);
    await(sent);
    assertOneCommunicatorAndNoBuffer();
  }

  /** Attempts of different work say nothing about each other. */
  @Test
  void attemptsOfDifferentWorkMatch() {
    startPair();
    Event sent =
        executors
            .get(0)
            .ofAttempt(new TransferAttempt(7, 3))
            .send(sources(0, 2), List.of(device(1)), keys(2))
            .get(0);
    DeviceTransfers receiver = executors.get(1).ofAttempt(new TransferAttempt(8, 0));
    checkAll(receiver.receive(device(1), shapes(1), List.of(device(0)), keys(2)), 2);
    await(sent);
  }

  @Test
  void withdrawnTransfersStartNoMore() {
    startPair();
    DeviceTransfers attempt = executors.get(0).ofAttempt(new TransferAttempt(7, 0));
    attempt.withdraw("the task was killed");
    assertThatThrownBy(() -> attempt.send(sources(0, 2), List.of(device(1)), keys(2)))
        .hasMessageContaining("the task was killed");
    exchange(3);
    assertOneCommunicatorAndNoBuffer();
  }
}
