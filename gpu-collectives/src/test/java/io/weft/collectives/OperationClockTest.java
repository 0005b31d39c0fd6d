package io.weft.collectives;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.Deadline;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The times that the counters of operations show. */
class OperationClockTest {
  private static final long TIMEOUT = Duration.ofMinutes(1).toNanos();
  private static final TypedBuffer DATA = TypedBuffer.at(4096, DataType.INT8, 8);

  private final CollectiveMetrics metrics = new CollectiveMetrics();
  private final OperationClock clock = new OperationClock(metrics, TIMEOUT);

  private CollectiveMetrics.Total total() {
    return metrics.total(Algorithm.ONE_SHOT);
  }

  @Test
  void everyOperationAndEveryWaitIsCounted() {
    for (int i = 1; i <= 1000; i++) {
      Deadline deadline = clock.start(new AllReduce(DATA, DATA, ReduceOp.SUM));
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
      Deadline unused = clock.start(new Barrier());
      long waited = i % 7 == 0 ? 50_000 : 0;
      clock.end(Algorithm.ONE_SHOT, waited);
      untimed += total().nanos() - before >= 50_000 ? 1 : 0;
    }
    assertThat(untimed).isPositive();
    assertThat(total().nanos()).isPositive();
    assertThat(clock.start(new Barrier()).expired()).isFalse();
    clock.fail(3);
    CollectiveMetrics.Total failed = metrics.total(Algorithm.UNFINISHED);
    assertThat(failed.failures()).isOne();
    assertThat(failed.waitNanos()).isEqualTo(3);
    assertThat(failed.nanos()).isPositive();
  }

  /** As many bytes as the quick operation before, but more work for this rank. */
  @ParameterizedTest
  @ValueSource(strings = {"another root", "more rows", "another type"})
  void moreWorkIsTimed(String more) {
    for (int i = 0; i < 1000; i++) {
      Deadline unused = clock.start(operation(more, false));
      clock.end(Algorithm.ONE_SHOT, 0);
      long before = total().nanos();
      Deadline later = clock.start(operation(more, true));
      long start = System.nanoTime();
      long worked = 0;
      while (worked < 10_000) {
        Thread.onSpinWait();
        worked = System.nanoTime() - start;
      }
      clock.end(Algorithm.ONE_SHOT, 0);
      assertThat(total().nanos() - before).isGreaterThanOrEqualTo(worked);
      assertThat(later.length().toNanos()).isEqualTo(TIMEOUT);
    }
  }

  private static Operation operation(String more, boolean costly) {
    return switch (more) {
      case "another root" -> new Gather(DATA, DATA, costly ? 0 : 1);
      case "more rows" -> {
        long[] none = {0, 0};
        long[] some = {0, 8};
        RaggedLayout layout = new RaggedLayout(1, none, none, none, costly ? some : none);
        yield new RaggedAllToAll(DATA, DATA, layout);
      }
      default -> {
        TypedBuffer data = DATA.as(costly ? DataType.BFLOAT16 : DataType.INT8);
        yield new AllReduce(data, data, ReduceOp.SUM);
      }
    };
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
