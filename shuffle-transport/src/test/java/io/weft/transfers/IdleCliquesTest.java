package io.weft.transfers;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import java.time.Duration;
import java.util.List;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

/** Both ends give up an idle communicator together, and create a new one when needed. */
class IdleCliquesTest extends TransferFixture {
  private static final Duration SHORT = Duration.ofMillis(200);
  private static final Duration NEVER = Duration.ofDays(1);

  @Override
  Executors.Communicators communicators() {
    return (folder, executor) ->
        new HostCommunicators(
            HostOptions.defaults()
                .withFolder(folder.resolve("host-" + executor))
                .withHostIdentity("host-" + executor));
  }

  private static TransferOptions idle(Duration idle) {
    return TransferOptions.DEFAULT.withDeadline(DEADLINE).withBatchAge(DEADLINE).withIdle(idle);
  }

  private long retired(int executor) {
    return executors.count(executor, TransferCounter.CLIQUES_RETIRED);
  }

  @Test
  void bothEndsGiveUpAnIdleCommunicatorAndCreateANewOne() {
    open(idle(SHORT));
    executors.start(2);
    for (int life = 1; life <= 3; life++) {
      exchange(life);
      long lives = life;
      Awaitility.await("the end of communicator " + life)
          .atMost(DEADLINE)
          .until(() -> retired(0) == lives && retired(1) == lives);
      for (int executor = 0; executor < 2; executor++) {
        TransferStatistics statistics = executors.get(executor).statistics();
        assertThat(statistics.cliques().created()).isEqualTo(life);
        assertThat(statistics.cliques().closed()).isEqualTo(life);
        assertThat(statistics.cliques().open()).isZero();
        assertThat(statistics.get(TransferCounter.FAILED)).isZero();
      }
    }
  }

  /**
   * The two ends check at very different times, because one has checked since its first transfer
   * with a third executor. With a deadline that is shorter than the longest pause between two
   * checks, they still agree.
   */
  @Test
  void aShortDeadlineLeavesTimeToAgree() {
    executors.start(2);
    exchange(1);
    Duration idle = Duration.ofSeconds(4);
    open(idle(idle).withDeadline(Duration.ofMillis(400)));
    executors.start(3);
    List<ReceivedBuffer> received = receive(2, 1, 1);
    send(1, 2, 1).forEach(Content::await);
    checkAll(received, 1);
    Awaitility.await("half of a pause between checks")
        .pollDelay(idle.dividedBy(8))
        .until(() -> true);
    exchange(2);
    Awaitility.await("the end of both communicators")
        .atMost(DEADLINE)
        .until(() -> retired(0) == 1 && retired(1) == 2 && retired(2) == 1);
  }

  /** One end offers to give up, the other has a transfer: both keep the communicator. */
  @Test
  void anEndWithATransferKeepsTheCommunicatorForBoth() {
    open(idle(SHORT));
    executors.start(1);
    executors.options(idle(NEVER)).start(1);
    exchange(1);
    for (int key = 2; key <= 4; key++) {
      awaitLastRoundOfTheFirst();
      exchange(key);
    }
    for (int executor = 0; executor < 2; executor++) {
      assertThat(retired(executor)).isZero();
      assertThat(executors.get(executor).statistics().cliques().created()).isEqualTo(1);
      assertThat(executors.count(executor, TransferCounter.FAILED)).isZero();
    }
    assertThat(executors.count(0, TransferCounter.CLIQUE_REUSES)).isGreaterThanOrEqualTo(3);
  }

  /** A peer that ends during the last round fails only that round. */
  @Test
  void aPeerThatEndsInsteadOfAnsweringFailsNoTransfer() {
    open(idle(SHORT));
    executors.start(1);
    executors.options(idle(NEVER)).start(1);
    exchange(1);
    awaitLastRoundOfTheFirst();
    executors.get(1).close();
    executors.start(1, "second", 1);
    exchange(2);
    assertThat(executors.count(0, TransferCounter.FAILED)).isZero();
    assertThat(retired(0)).isZero();
    assertThat(executors.get(0).statistics().cliques().created()).isEqualTo(2);
  }

  /** Waits for a round that only one end has started, without a transfer. */
  private void awaitLastRoundOfTheFirst() {
    Awaitility.await("an end that gives up the communicator")
        .atMost(DEADLINE)
        .until(
            () ->
                executors.count(0, TransferCounter.MANIFESTS)
                    == executors.count(1, TransferCounter.MANIFESTS) + 1);
  }
}
