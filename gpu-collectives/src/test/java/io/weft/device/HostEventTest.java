package io.weft.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class HostEventTest {

  @Test
  void waitingBeforeRecordingBlocksUntilItIsRecorded() throws Exception {
    HostEvent event = new HostEvent("a copy");
    CompletableFuture<Void> waiter = CompletableFuture.runAsync(() -> event.awaitRecorded(soon()));
    assertThat(waiter).isNotDone();
    event.record();
    await().until(waiter::isDone);
    assertThat(waiter).isCompleted();
    assertThat(event.state()).isEqualTo(Event.State.RECORDED);
  }

  @Test
  void droppedByItsProducerFailsWithItsName() {
    HostEvent event = new HostEvent("a copy");
    try (event) {
      event.record();
    }
    assertThatThrownBy(() -> event.await(soon()))
        .isInstanceOf(EventFailedException.class)
        .hasMessageContaining("a copy was dropped by its producer");
    assertThat(event.toFuture()).isCompletedExceptionally();
  }

  @Test
  void firstEndStays() {
    HostEvent event = new HostEvent("a copy");
    event.fail(new IllegalStateException("first"));
    event.complete();
    event.fail(new IllegalStateException("second"));
    assertThat(event.failure().orElseThrow()).hasMessage("first");
  }

  @Test
  void waitHasADeadlineThatNamesTheWork() {
    HostEvent event = new HostEvent("send to rank 3");
    assertThatThrownBy(() -> event.await(Deadline.after(Duration.ofMillis(20))))
        .isInstanceOf(EventTimeoutException.class)
        .hasMessageContaining("send to rank 3 is still PENDING");
  }

  @Test
  void actionsRunOnceWhetherBeforeOrAfterTheEnd() {
    HostEvent event = new HostEvent("a copy");
    List<String> seen = new ArrayList<>();
    event.whenRecorded(() -> seen.add("recorded"));
    event.whenDone(cause -> seen.add("done " + cause));
    event.complete();
    event.complete();
    event.whenRecorded(() -> seen.add("late recorded"));
    event.whenDone(cause -> seen.add("late done " + cause));
    assertThat(seen).containsExactly("recorded", "done null", "late recorded", "late done null");
  }

  /** A failed listener affects neither later listeners nor the producer. */
  @Test
  void aListenerThatThrowsAffectsNoOther() {
    HostEvent event = new HostEvent("a copy");
    List<String> seen = new ArrayList<>();
    event.whenRecorded(
        () -> {
          throw new IllegalStateException("thrown by the test");
        });
    event.whenRecorded(() -> seen.add("recorded"));
    event.record();
    assertThat(seen).containsExactly("recorded");
    assertThat(event.state()).isEqualTo(Event.State.RECORDED);
  }

  /** A callback that is added while the event ends is never lost. */
  @Test
  void callbackRacingCompletionIsNotLost() throws Exception {
    AtomicInteger called = new AtomicInteger();
    for (int round = 0; round < 2000; round++) {
      HostEvent event = new HostEvent("race");
      CountDownLatch start = new CountDownLatch(1);
      Thread completing =
          new Thread(
              () -> {
                start.countDown();
                event.complete();
              });
      completing.start();
      start.await();
      event.whenDone(cause -> called.incrementAndGet());
      completing.join();
    }
    assertThat(called).hasValue(2000);
  }

  private static Deadline soon() {
    return Deadline.after(Duration.ofSeconds(60));
  }

  @Test
  void aListenerThatThrowsDoesNotSilenceTheOthers() {
    HostEvent event = new HostEvent("work");
    event.whenDone(
        cause -> {
          throw new IllegalStateException("thrown by the test");
        });
    event.whenDone(
        cause -> {
          throw new NoClassDefFoundError("thrown by the test");
        });
    List<Throwable> heard = new ArrayList<>();
    event.whenDone(heard::add);
    IllegalStateException failure = new IllegalStateException("the work failed");
    event.fail(failure);
    assertThat(heard).containsExactly(failure);
  }
}
