package io.weft.spark.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.UniqueId;
import io.weft.spark.rendezvous.StageRendezvous.StageAttempt;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class StageRendezvousTest {
  private static final StageAttempt KEY = new StageAttempt(3, 0);
  private static final StageAttempt RETRY = new StageAttempt(3, 1);

  private final StageRendezvous stages = new StageRendezvous();

  @Test
  void aRoundIsCompleteWhenAllHaveCome() {
    RendezvousAnswer first = stages.answer(call(KEY, 0, "join", "a"));
    assertThat(first.messages()).isNull();
    assertThat(first.missing()).containsExactly(1);
    RendezvousAnswer second = stages.answer(call(KEY, 1, "join", "b"));
    assertThat(second.messages()).extracting(String::new).containsExactly("a", "b");
    assertThat(second.names()).containsExactly("task of 0", "task of 1");
    RendezvousAnswer again = stages.answer(call(KEY, 0, "join", "a").withoutMessage());
    assertThat(again.messages()).extracting(String::new).containsExactly("a", "b");
    assertThat(again.id()).isEqualTo(first.id()).isEqualTo(second.id());
  }

  @Test
  void everyAttemptHasItsOwnId() {
    UniqueId first = UniqueId.decode(stages.answer(call(KEY, 0, "join", "")).id());
    UniqueId retry = UniqueId.decode(stages.answer(call(RETRY, 0, "join", "")).id());
    assertThat(first).isNotEqualTo(retry);
  }

  @Test
  void aRoundIsForgottenOnceALaterOneIsComplete() {
    stages.answer(call(KEY, 0, "join", "a"));
    stages.answer(call(KEY, 1, "join", "b"));
    stages.answer(call(KEY, 0, "next", "c"));
    assertThat(stages.answer(call(KEY, 1, "join", "b").withoutMessage()).messages()).hasSize(2);
    stages.answer(call(KEY, 1, "next", "d"));
    assertThat(stages.answer(call(KEY, 1, "join", "b").withoutMessage()).missing())
        .containsExactly(0, 1);
  }

  /** The threads of a task may ask for communicators of hosts and of GPUs at the same time. */
  @Test
  void roundsOfAnotherSequenceAreKept() {
    stages.answer(call(KEY, 0, "gpu/join", "a"));
    stages.answer(call(KEY, 0, "join", "b"));
    stages.answer(call(KEY, 1, "join", "c"));
    assertThat(stages.answer(call(KEY, 1, "gpu/join", "d")).messages())
        .extracting(String::new)
        .containsExactly("a", "d");
  }

  @Test
  void aTaskThatSparkReportsAsFailedFailsTheOthers() {
    stages.stageStarted(KEY, 2);
    stages.taskStarted(KEY, 1, "task 8 on executor 2 at host-b");
    stages.taskFailed(KEY, 1, "failed: java.lang.IllegalStateException: boom");
    RendezvousAnswer answer = stages.answer(call(KEY, 0, "join", ""));
    assertThat(answer.failure())
        .isEqualTo(
            "rank 1 (task 8 on executor 2 at host-b) of barrier stage 3.0 failed:"
                + " java.lang.IllegalStateException: boom");
    assertThat(answer.culprits()).containsExactly(1);
  }

  @Test
  void aTaskThatGivesUpFailsTheOthersAndTheFirstReasonCounts() {
    stages.answer(call(KEY, 0, "join", ""));
    stages.answer(call(KEY, 1, 2, "failed", null, "got no communicator: no space"));
    stages.taskFailed(KEY, 1, "failed later");
    assertThat(stages.answer(call(KEY, 0, "join", "").withoutMessage()).failure())
        .isEqualTo("rank 1 (task of 1) of barrier stage 3.0 got no communicator: no space");
  }

  @Test
  void anEndedAttemptIsForgottenAndItsLateTasksAreRefused() {
    stages.stageStarted(KEY, 2);
    stages.stageEnded(KEY);
    assertThat(stages.open()).isZero();
    RendezvousAnswer late = stages.answer(call(KEY, 1, "join", ""));
    assertThat(late.failure()).contains("task of 1", "barrier stage 3.0, which has ended");
    assertThat(stages.open()).isZero();
    assertThat(stages.answer(call(RETRY, 0, "join", "")).failure()).isNull();
    assertThat(stages.open()).isOne();
  }

  @Test
  void aTaskWithAnotherNumberOfTasksIsRefused() {
    stages.stageStarted(KEY, 2);
    RendezvousCall<StageAttempt> wrong = call(KEY, 2, 3, "join", new byte[0], null);
    assertThatThrownBy(() -> stages.answer(wrong))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("barrier stage 3.0 has 2 members, but one came as 2 of 3");
  }

  @Test
  void eventsOfStagesWithoutARendezvousAreIgnored() {
    stages.taskStarted(KEY, 0, "task 1");
    stages.taskFailed(KEY, 0, "failed");
    assertThat(stages.open()).isZero();
  }

  /**
   * Trap 21: Spark calls the driver on one thread, and more ranks than that wait for each other. No
   * call waits, so all meet. The last rank comes when all others have an answer.
   */
  @Test
  void oneMessageThreadServesAllRanks() throws Exception {
    int nranks = 8;
    ExecutorService messages = Executors.newSingleThreadExecutor();
    ExecutorService ranks = Executors.newFixedThreadPool(nranks);
    CountDownLatch answered = new CountDownLatch(nranks - 1);
    try {
      List<Future<List<byte[]>>> met = new ArrayList<>();
      for (int rank = 0; rank < nranks; rank++) {
        int self = rank;
        met.add(
            ranks.submit(
                () -> {
                  if (self == nranks - 1) {
                    assertThat(answered.await(60, TimeUnit.SECONDS)).isTrue();
                  }
                  return meet(messages, self, nranks, answered);
                }));
      }
      for (Future<List<byte[]>> each : met) {
        assertThat(each.get(60, TimeUnit.SECONDS)).hasSize(nranks);
      }
    } finally {
      ranks.shutdownNow();
      messages.shutdownNow();
    }
  }

  /** Asks until all ranks have come. */
  private List<byte[]> meet(ExecutorService messages, int rank, int nranks, CountDownLatch answered)
      throws Exception {
    RendezvousCall<StageAttempt> call = call(KEY, rank, nranks, "join", new byte[0], null);
    RendezvousAnswer answer = messages.submit(() -> stages.answer(call)).get(60, TimeUnit.SECONDS);
    answered.countDown();
    while (answer.messages() == null) {
      answer =
          messages.submit(() -> stages.answer(call.withoutMessage())).get(60, TimeUnit.SECONDS);
    }
    return answer.messages();
  }

  private static RendezvousCall<StageAttempt> call(
      StageAttempt key, int rank, String round, String message) {
    return call(key, rank, 2, round, message.getBytes(), null);
  }

  private static RendezvousCall<StageAttempt> call(
      StageAttempt key, int rank, int nranks, String round, byte[] message, String failure) {
    return new RendezvousCall<>(
        key, key + " rank " + rank, rank, nranks, "task of " + rank, round, message, failure);
  }

  @Test
  void namesOfStartedTasksAreKnownBeforeTheyCome() {
    stages.stageStarted(KEY, 2);
    stages.taskStarted(KEY, 1, "task 8 on executor 2 at host-b");
    assertThat(stages.answer(call(KEY, 0, "join", "")).names())
        .isEqualTo(List.of("task of 0", "task 8 on executor 2 at host-b"));
  }
}
