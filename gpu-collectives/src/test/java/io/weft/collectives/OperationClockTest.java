package io.weft.collectives;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.Deadline;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** The times that the counters of operations show. */
class OperationClockTest {
  private static final long TIMEOUT = Duration.ofMinutes(1).toNanos();

  private final CollectiveMetrics metrics = new CollectiveMetrics();
  private final OperationClock clock = new OperationClock(metrics, TIMEOUT);

  private CollectiveMetrics.Total total() {
    return metrics.total(Algorithm.ONE_SHOT);
  }

  @Test
  void everyOperationAndEveryWaitIsCounted() {
    for (int i = 1; i <= 1000; i++) {
      Deadline deadline = clock.start(OperationKind.ALL_REDUCE, 8);
      assertThat(deadline.length().toNanos()).isEqualTo(TIMEOUT);
      clock.end(Algorithm.ONE_SHOT, 1_000_000);
      assertThat(total().calls()).isEqualTo(i);
      assertThat(total().bytes()).isEqualTo(8L * i);
      assertThat(total().waitNanos()).isEqualTo(1_000_000L * i);
    }
  }

  /** Quick operations count with the time of an earlier one, and with their own waits. */
  @Test
  void operationsThatAreNotTimedCountTheirWaits() {
    int untimed = 0;
    for (int i = 0; i < 1000; i++) {
      long before = total().nanos();
      Deadline unused = clock.start(OperationKind.BARRIER, 0);
      long waited = i % 7 == 0 ? 50_000 : 0;
      clock.end(Algorithm.ONE_SHOT, waited);
      untimed += total().nanos() - before >= 50_000 ? 1 : 0;
    }
    assertThat(untimed).isPositive();
    assertThat(total().nanos()).isPositive();
    assertThat(clock.start(OperationKind.BARRIER, 0).expired()).isFalse();
    clock.fail(3);
    CollectiveMetrics.Total failed = metrics.total(Algorithm.UNFINISHED);
    assertThat(failed.failures()).isOne();
    assertThat(failed.waitNanos()).isEqualTo(3);
    assertThat(failed.nanos()).isPositive();
  }

  @Test
  void aDeadlineFromItsFirstUseExpires() {
    assertThat(Deadline.fromFirstUse(0).expired()).isTrue();
    Deadline late = Deadline.fromFirstUse(TIMEOUT);
    assertThat(late.length()).isEqualTo(Duration.ofMinutes(1));
    assertThat(late.remainingNanos()).isBetween(1L, TIMEOUT);
    assertThat(late.earlierBy(TIMEOUT).expired()).isTrue();
  }
}
