package io.weft.transfers;

import static io.weft.transfers.Content.await;
import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.DataType;
import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.device.Device;
import io.weft.device.HostEvent;
import io.weft.transfers.PreparedTransfer.TransferEndpoints;
import io.weft.transfers.TransferLauncher.TransferBatch;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

/** When batches are launched, and in which order. */
class BatchesTest extends TransferFixture {
  private static final BufferShape SHAPE = BufferShape.of(DataType.INT32, 256);
  private static final Duration NEVER = Duration.ofDays(1);

  @Override
  Executors.Communicators communicators() {
    return (folder, executor) -> LocalCommunicator::create;
  }

  private void start(long batchBytes, Duration age) {
    open(
        TransferOptions.DEFAULT
            .withDeadline(DEADLINE)
            .withBatchBytes(batchBytes)
            .withBatchAge(age));
    executors.start(2);
  }

  private List<DeferredTransfer> place(int executor, int first, int count) {
    List<ArrayPlacement> placements = new ArrayList<>();
    for (int key = first; key < first + count; key++) {
      placements.add(placement(executor, 0, 1, SHAPE, key));
    }
    return executors.get(executor).place(placements);
  }

  private void checkAndClose(List<DeferredTransfer> sent, List<DeferredTransfer> received) {
    List<CompletableFuture<Void>> needs =
        sent.stream().map(transfer -> transfer.event().toFuture()).toList();
    assertThat(needs).hasSameSizeAs(received);
    for (int i = 0; i < sent.size(); i++) {
      await(received.get(i).event());
      check(received.get(i).received().orElseThrow().buffer(), 1 + i);
      await(sent.get(i).event());
      sent.get(i).close();
      received.get(i).close();
    }
  }

  @Test
  void aBatchIsLaunchedWhenItHasEnoughBytes() {
    start(4 * 1024, NEVER);
    List<DeferredTransfer> sent = place(0, 1, 10);
    List<DeferredTransfer> received = place(1, 1, 10);
    assertThat(executors.count(0, TransferCounter.BATCHES_BY_BYTES)).isEqualTo(2);
    assertThat(executors.count(0, TransferCounter.BATCHES_BY_NEED)).isZero();
    checkAndClose(sent, received);
    assertThat(executors.count(0, TransferCounter.BATCHES_BY_BYTES)).isEqualTo(2);
    assertThat(executors.count(0, TransferCounter.BATCHES_BY_NEED)).isEqualTo(1);
    assertThat(executors.count(0, TransferCounter.SENT)).isEqualTo(10);
  }

  @Test
  void aBatchIsLaunchedWhenItIsOldEnough() {
    start(1 << 30, Duration.ofMillis(20));
    List<DeferredTransfer> sent = place(0, 1, 3);
    List<DeferredTransfer> received = place(1, 1, 3);
    // No thread waits on the events.
    Awaitility.await()
        .atMost(DEADLINE)
        .until(() -> executors.count(1, TransferCounter.RECEIVED) == 3);
    assertThat(executors.count(0, TransferCounter.BATCHES_BY_AGE)).isPositive();
    checkAndClose(sent, received);
    assertThat(executors.count(0, TransferCounter.BATCHES_BY_NEED)).isZero();
  }

  @Test
  void aBatchIsLaunchedWhenAThreadWaitsAndNotBefore() {
    start(1 << 30, NEVER);
    List<DeferredTransfer> sent = place(0, 1, 3);
    List<DeferredTransfer> received = place(1, 1, 3);
    assertThat(executors.rendezvous().opened()).isZero();
    assertThat(sent.get(0).event().toFuture()).isNotDone();
    checkAndClose(sent, received);
    assertThat(executors.count(0, TransferCounter.BATCHES_BY_NEED)).isEqualTo(1);
    assertThat(executors.count(1, TransferCounter.BATCHES_BY_NEED)).isEqualTo(1);
    assertThat(executors.count(0, TransferCounter.GROUPS)).isEqualTo(1);
  }

  /** A call is launched behind deferred transfers, so a pair keeps the order of the calls. */
  @Test
  void aCallLaunchesDeferredTransfersToo() {
    start(1 << 30, NEVER);
    List<DeferredTransfer> sent = place(0, 1, 2);
    var third = send(0, 1, 3).get(0);
    List<ReceivedBuffer> received = receive(1, 0, 1, 2, 3);
    checkAll(received, 1, 2, 3);
    await(third);
    sent.forEach(transfer -> await(transfer.event()));
    assertThat(executors.count(0, TransferCounter.BATCHES_BY_CALL)).isEqualTo(1);
    assertThat(executors.count(0, TransferCounter.BATCHES_BY_NEED)).isZero();
    sent.forEach(DeferredTransfer::close);
  }

  /** Trap 2. */
  @Test
  void cliquesOfABatchComeInTheOrderOfFirstAppearance() {
    Random random = new Random(1);
    for (int round = 0; round < 50; round++) {
      TransferBatch batch = new TransferBatch();
      Set<CliqueKey> order = new LinkedHashSet<>();
      for (int i = 0; i < 40; i++) {
        CliqueKey clique = clique(random.nextInt(12));
        order.add(clique);
        batch.add(
            new PreparedTransfer(
                clique,
                new TransferEndpoints(device(0), device(1), true),
                i,
                TransferAttempt.NONE,
                Content.ints(4, i),
                TransferEncoding.PLAIN,
                HostEvent.completed("its source")));
      }
      assertThat(batch.byClique().keySet()).containsExactlyElementsOf(order);
    }
  }

  private static CliqueKey clique(int peer) {
    return new CliqueKey(
        List.of(
            new CliqueMember("0", "first", Device.HOST),
            new CliqueMember("peer-" + peer, "first", Device.HOST)),
        "transfers");
  }
}
