package io.weft.collectives;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.Deadline;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

class TicketLockTest {
  private static final Duration MINUTE = Duration.ofMinutes(1);

  /** Trap: the steps of a long replay are in time, but the operation behind it gives up. */
  @Test
  void progressOfTheTurnBeforeRestartsTheTimeout() {
    Duration timeout = Duration.ofMillis(1500);
    TicketLock lock = new TicketLock(timeout, () -> false);
    long first = lock.take();
    assertThat(lock.await(first)).isTrue();
    AtomicReference<Thread> waiter = new AtomicReference<>();
    long second = lock.take();
    CompletableFuture<Boolean> mine =
        CompletableFuture.supplyAsync(
            () -> {
              waiter.set(Thread.currentThread());
              return lock.await(second);
            });
    Awaitility.await()
        .atMost(MINUTE)
        .until(() -> waiter.get() != null && waiter.get().getState() == Thread.State.TIMED_WAITING);
    long start = System.nanoTime();
    lock.progress(start + MINUTE.toNanos());
    Awaitility.await()
        .atMost(MINUTE)
        .until(() -> System.nanoTime() - start > timeout.plusMillis(300).toNanos());
    lock.pass();
    assertThat(mine.join()).isTrue();
  }

  @Test
  void anActionWaitsForTheEndOfTheLastTurn() {
    TicketLock lock = new TicketLock(MINUTE, () -> true);
    List<String> seen = new ArrayList<>();
    assertThat(lock.await(lock.take())).isTrue();
    assertThat(lock.awaitIdle(Deadline.afterNanos(1))).isFalse();
    lock.whenIdle(() -> seen.add("ended"));
    assertThat(seen).isEmpty();
    lock.pass();
    assertThat(seen).containsExactly("ended");
    lock.whenIdle(() -> seen.add("idle"));
    assertThat(seen).containsExactly("ended", "idle");
  }
}
