package io.weft.transfers;

import static io.weft.transfers.Content.await;
import static io.weft.transfers.Content.failure;
import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The contract of transfers, for every kind of communicator. */
abstract class TransferContract extends TransferFixture {
  @ParameterizedTest
  @CsvSource({"1, 0", "1, 1", "2, 1", "3, 5"})
  void arraysOfBuffersGoBothWays(int there, int back) {
    executors.start(2);
    long[] to = IntStream.range(0, there).mapToLong(i -> 100 + i).toArray();
    long[] from = IntStream.range(0, back).mapToLong(i -> 200 + i).toArray();
    List<SourceBuffer> sources = sources(0, to);
    List<Event> sent = executors.get(0).send(sources, times(there, device(1)), to);
    List<ReceivedBuffer> answers = receive(0, 1, from);
    List<ReceivedBuffer> received = receive(1, 0, to);
    send(1, 0, from).forEach(Content::await);
    checkAll(received, to);
    checkAll(answers, from);
    sent.forEach(Content::await);
    for (int i = 0; i < there; i++) {
      check(sources.get(i).buffer(), to[i]);
    }
    assertThat(executors.get(0).statistics().cliques().created()).isEqualTo(1);
    assertThat(executors.count(0, TransferCounter.BYTES_SENT)).isEqualTo(there * 1024L);
    assertThat(executors.count(0, TransferCounter.BYTES_RECEIVED)).isEqualTo(back * 1024L);
  }

  /** Trap 4. */
  @Test
  void aPairThatSendsBothWaysIsOneCommunicatorAndOneGroup() {
    executors.start(2);
    for (int round = 0; round < 3; round++) {
      List<DeferredTransfer> zero = place(0, round);
      List<DeferredTransfer> one = place(1, round);
      List<CompletableFuture<Void>> needs =
          List.of(zero.get(0).event().toFuture(), one.get(0).event().toFuture());
      assertThat(needs).hasSize(2);
      zero.forEach(transfer -> await(transfer.event()));
      one.forEach(transfer -> await(transfer.event()));
      check(zero.get(2).received().orElseThrow().buffer(), 3 + round);
      check(one.get(0).received().orElseThrow().buffer(), 1 + round);
      check(one.get(1).received().orElseThrow().buffer(), 2 + round);
      zero.forEach(DeferredTransfer::close);
      one.forEach(DeferredTransfer::close);
    }
    for (int executor = 0; executor < 2; executor++) {
      TransferStatistics statistics = executors.get(executor).statistics();
      assertThat(statistics.cliques().created()).isEqualTo(1);
      assertThat(statistics.get(TransferCounter.GROUPS)).isEqualTo(3);
      assertThat(statistics.get(TransferCounter.MANIFESTS)).isEqualTo(3);
      assertThat(statistics.get(TransferCounter.CLIQUE_REQUESTS)).isEqualTo(3);
      assertThat(statistics.get(TransferCounter.CLIQUE_REUSES)).isEqualTo(2);
      assertThat(statistics.get(TransferCounter.BATCHES_BY_NEED)).isEqualTo(3);
    }
  }

  /** Two arrays of different shape and type from 0 to 1, and one back. */
  private List<DeferredTransfer> place(int executor, int round) {
    BufferShape large = BufferShape.of(DataType.FLOAT64, 30, 1000);
    BufferShape small = BufferShape.of(DataType.INT16, 3);
    return executors
        .get(executor)
        .place(
            List.of(
                placement(executor, 0, 1, small, 1 + round),
                placement(executor, 0, 1, large, 2 + round),
                placement(executor, 1, 0, large, 3 + round)));
  }

  /** Trap 3: the keys reveal the swap at both ends, and other transfers go on. */
  @Test
  void swappedTransfersOfOneSizeFailOnBothSidesAndDeliverNothing() {
    executors.start(2);
    List<Event> sent = send(0, 1, 7, 8, 9);
    List<ReceivedBuffer> received = receive(1, 0, 8, 7, 9);
    for (int i = 0; i < 2; i++) {
      String text =
          "executor 0/device 0 sends key %d (256 int32) but executor 1/device 0 receives key %d (256 int32)"
              .formatted(7 + i, 8 - i);
      assertThat(failure(sent.get(i))).hasMessageContaining(text);
      assertThat(failure(received.get(i).event())).hasMessageContaining(text);
      received.get(i).close();
    }
    await(sent.get(2));
    checkAll(received.subList(2, 3), 9);
    exchange(10);
    assertThat(executors.get(1).statistics().cliques().created()).isEqualTo(1);
    assertThat(executors.count(0, TransferCounter.FAILED)).isEqualTo(2);
    assertThat(executors.count(1, TransferCounter.FAILED)).isEqualTo(2);
  }

  @Test
  void anotherTypeOrCountThanExpectedFailsOnBothSides() {
    executors.start(2);
    List<Event> sent = send(0, 1, 7);
    BufferShape shape = BufferShape.of(DataType.FLOAT32, 256);
    ReceivedBuffer received =
        executors.get(1).receive(device(1), List.of(shape), List.of(device(0)), keys(7)).get(0);
    String text = "sends key 7 (256 int32) but executor 1/device 0 receives key 7 (256 float32)";
    assertThat(failure(sent.get(0))).hasMessageContaining(text);
    assertThat(failure(received.event())).hasMessageContaining(text);
    received.close();
  }

  /** Traps 1 and 21: all executors with all others, in different orders; only pairs keep theirs. */
  @Test
  void manyTransfersBetweenFourExecutorsInCrossedOrders() {
    int nodes = 4;
    open(TransferOptions.DEFAULT.withDeadline(DEADLINE).withBatchBytes(200_000));
    executors.start(nodes);
    List<List<DeferredTransfer>> all = new ArrayList<>();
    for (int executor = 0; executor < nodes; executor++) {
      all.add(executors.get(executor).place(crossed(executor, nodes)));
    }
    for (List<DeferredTransfer> transfers : all) {
      for (DeferredTransfer transfer : transfers) {
        await(transfer.event());
      }
    }
    for (int executor = 0; executor < nodes; executor++) {
      List<ArrayPlacement> placements = crossed(executor, nodes);
      for (int i = 0; i < placements.size(); i++) {
        long key = placements.get(i).key();
        all.get(executor).get(i).received().ifPresent(received -> check(received.buffer(), key));
        all.get(executor).get(i).close();
      }
      TransferStatistics statistics = executors.get(executor).statistics();
      assertThat(statistics.cliques().created()).isEqualTo(nodes - 1);
      assertThat(statistics.get(TransferCounter.FAILED)).isZero();
      assertThat(statistics.buffers().out()).isZero();
    }
  }

  /** Every executor uses another order of the pairs, and the same order within each pair. */
  private List<ArrayPlacement> crossed(int executor, int nodes) {
    Random order = new Random(executor);
    List<int[]> pairs = new ArrayList<>();
    for (int from = 0; from < nodes; from++) {
      for (int to = 0; to < nodes; to++) {
        if (from != to) {
          pairs.add(new int[] {from, to});
        }
      }
    }
    Collections.shuffle(pairs, order);
    List<ArrayPlacement> placements = new ArrayList<>();
    for (int[] pair : pairs) {
      Random random = new Random(31L * pair[0] + pair[1]);
      for (int i = 0; i < 20; i++) {
        DataType type = DataType.values()[random.nextInt(DataType.values().length)];
        BufferShape shape = BufferShape.of(type, 1 + random.nextInt(3), 1 + random.nextInt(9000));
        long key = 1000L * pair[0] + 100L * pair[1] + i;
        placements.add(placement(executor, pair[0], pair[1], shape, key));
      }
    }
    return placements;
  }

  /** Sends first on both sides, as separate calls: neither waits for the other's receive. */
  @Test
  void bothSidesMaySendLargeArraysFirst() {
    executors.start(2);
    BufferShape shape = BufferShape.of(DataType.INT8, 3_000_000);
    List<Event> sent = new ArrayList<>();
    for (int executor = 0; executor < 2; executor++) {
      sent.addAll(
          executors
              .get(executor)
              .send(
                  List.of(
                      SourceBuffer.of(
                          device(executor), placed(executor, Content.of(shape, executor)))),
                  List.of(device(1 - executor)),
                  keys(5)));
    }
    for (int executor = 0; executor < 2; executor++) {
      ReceivedBuffer received =
          executors
              .get(executor)
              .receive(device(executor), List.of(shape), List.of(device(1 - executor)), keys(5))
              .get(0);
      await(received.event());
      check(received.buffer(), 1 - executor);
      received.close();
    }
    sent.forEach(Content::await);
  }

  /** Trap 17: cliques share no state. */
  @Test
  void twoCliquesOfAnExecutorAlternate() {
    executors.start(3);
    for (int round = 0; round < 25; round++) {
      for (int to = 1; to < 3; to++) {
        long key = 10L * round + to;
        List<ReceivedBuffer> received = receive(to, 0, key);
        send(0, to, key).forEach(Content::await);
        checkAll(received, key);
      }
    }
    assertThat(executors.get(0).statistics().cliques().created()).isEqualTo(2);
    assertThat(executors.count(0, TransferCounter.GROUPS)).isEqualTo(50);
  }

  /** Buffers of earlier transfers are used, repeatedly. */
  @Test
  void theReceivePathAllocatesNothing() throws Exception {
    executors.start(2);
    List<TransferBuffer> earlier = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      earlier.add(executors.get(1).buffers().take(1024));
    }
    earlier.forEach(TransferBuffer::close);
    long arena = executors.arena(1).statistics().allocations();
    long allocated = executors.get(1).statistics().buffers().allocated();
    for (int round = 0; round < 100; round++) {
      List<ReceivedBuffer> received = receive(1, 0, round, 1000 + round, 2000 + round);
      List<Event> sent = send(0, 1, round, 1000 + round, 2000 + round);
      checkAll(received, round, 1000 + round, 2000 + round);
      sent.forEach(Content::await);
    }
    TransferStatistics statistics = executors.get(1).statistics();
    assertThat(executors.arena(1).statistics().allocations()).isEqualTo(arena);
    assertThat(statistics.buffers().allocated()).isEqualTo(allocated);
    assertThat(statistics.buffers().reused()).isGreaterThanOrEqualTo(300);
    assertThat(statistics.buffers().out()).isZero();
    assertThat(statistics.cliques().created()).isEqualTo(1);
  }

  /** Trap 9: memory stays in use until the lane has let go, also if its holder closes it. */
  @Test
  void aBufferThatIsClosedEarlyIsNotHandedOutBeforeTheLaneLetsGo() throws Exception {
    executors.start(2);
    ReceivedBuffer received = receive(1, 0, 3).get(0);
    TypedBuffer buffer = received.buffer();
    Content.awaitRecorded(received.event());
    received.close();
    try (var other = executors.get(1).buffers().take(1024)) {
      assertThat(other.address()).isNotEqualTo(buffer.address());
    }
    assertThat(failure(received.event())).hasMessageContaining("key 3");
    Event sent = send(0, 1, 3).get(0);
    exchange(4);
    assertThat(failure(sent)).hasMessageContaining("failed at executor 1");
    assertThat(executors.get(1).statistics().buffers().out()).isZero();
  }

  /** Trap 9: the same for a send; a new holder of memory writes into it at once. */
  @Test
  void aSourceThatIsReleasedAfterItsSubmissionArrivesAsItWas() throws Exception {
    executors.start(2);
    BufferShape shape = shapes(1).get(0);
    HostEvent written = new HostEvent("slow work");
    TransferBuffer memory = executors.get(0).buffers().take(shape.bytes());
    TypedBuffer source = memory.as(shape);
    Content.fill(source, 7);
    Event sent =
        executors
            .get(0)
            .send(
                List.of(new SourceBuffer(device(0), source, written)), List.of(device(1)), keys(7))
            .get(0);
    memory.close();
    try (TransferBuffer other = executors.get(0).buffers().take(shape.bytes())) {
      Content.fill(other.as(shape), 8);
      List<ReceivedBuffer> received = receive(1, 0, 7);
      written.complete();
      await(sent);
      checkAll(received, 7);
    }
    assertThat(executors.get(0).statistics().buffers().out()).isZero();
  }
}
