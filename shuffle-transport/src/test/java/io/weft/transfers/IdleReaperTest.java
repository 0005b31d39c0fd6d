package io.weft.transfers;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.transfers.TransferCliques.IdleReaper;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

class IdleReaperTest {
  private static final Duration PAUSE = Duration.ofMillis(1);

  /** Otherwise idle communicators would stay, and the other end would wait for this one. */
  @Test
  void checksGoOnAfterAFailedOne() throws Exception {
    CountDownLatch failing = new CountDownLatch(3);
    CountDownLatch behind = new CountDownLatch(3);
    Runnable fail =
        () -> {
          failing.countDown();
          throw new IllegalStateException("failed by the test");
        };
    try (IdleReaper all = new IdleReaper("1", PAUSE, () -> List.of(fail, behind::countDown))) {
      all.begin();
      assertThat(failing.await(60, TimeUnit.SECONDS)).isTrue();
      assertThat(behind.await(60, TimeUnit.SECONDS)).isTrue();
    }
  }

  @Test
  void aClosedReaperNeverStarts() {
    AtomicInteger looks = new AtomicInteger();
    IdleReaper all = new IdleReaper("closed", PAUSE, () -> List.of(looks::incrementAndGet));
    all.close();
    all.begin();
    assertThat(threads()).isZero();
    assertThat(looks).hasValue(0);
  }

  @Test
  void theThreadEndsWithIt() {
    IdleReaper all = new IdleReaper("closed", PAUSE, List::of);
    all.begin();
    all.begin();
    assertThat(threads()).isEqualTo(1);
    all.close();
    Awaitility.await().atMost(Duration.ofSeconds(60)).until(() -> threads() == 0);
  }

  /** A check frees memory, and the caller closes its arena next. */
  @Test
  void aCheckUnderWayEndsBeforeItIsClosed() throws Exception {
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch mayEnd = new CountDownLatch(1);
    AtomicBoolean interrupted = new AtomicBoolean();
    Runnable check =
        () -> {
          begun.countDown();
          try {
            assertThat(mayEnd.await(60, TimeUnit.SECONDS)).isTrue();
          } catch (InterruptedException e) {
            interrupted.set(true);
          }
        };
    IdleReaper all = new IdleReaper("slow", PAUSE, () -> List.of(check));
    all.begin();
    assertThat(begun.await(60, TimeUnit.SECONDS)).isTrue();
    Thread closer = new Thread(all::close, "closer");
    closer.start();
    Awaitility.await()
        .atMost(Duration.ofSeconds(60))
        .until(() -> !closer.isAlive() || closer.getState() == Thread.State.TIMED_WAITING);
    assertThat(closer.isAlive()).isTrue();
    mayEnd.countDown();
    closer.join();
    assertThat(interrupted).isFalse();
  }

  private static long threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals("weft-transfer-idle-closed"))
        .count();
  }
}
