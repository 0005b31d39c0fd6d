package io.weft.spark.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class DeviceTurnsTest {
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private static void killed() {
    throw new IllegalStateException("killed");
  }

  @Test
  void aTaskWaitsForTheEndOfAnother() throws Exception {
    DeviceTurns turns = new DeviceTurns(2, PATIENCE);
    assertThat(turns.take(1, () -> {})).isTrue();
    assertThat(turns.take(2, () -> {})).isTrue();
    assertThat(turns.take(2, () -> {})).as("the task is admitted").isFalse();
    CountDownLatch waits = new CountDownLatch(1);
    CompletableFuture<Boolean> third =
        CompletableFuture.supplyAsync(() -> turns.take(3, waits::countDown));
    assertThat(waits.await(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
    assertThat(third).isNotDone();
    assertThat(turns.taken()).isEqualTo(2);
    turns.giveBack(1);
    turns.giveBack(1);
    assertThat(third.get(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
    assertThat(turns.taken()).isEqualTo(2);
  }

  /** The admitted tasks may be waiting for it, as in a barrier stage. */
  @Test
  void aTaskContinuesWithoutAdmissionAfterTheTimeout() {
    DeviceTurns turns = new DeviceTurns(1, Duration.ofMillis(1));
    assertThat(turns.take(1, () -> {})).isTrue();
    assertThat(turns.take(2, () -> {})).isTrue();
    assertThat(turns.taken()).isEqualTo(2);
    assertThat(turns.take(2, DeviceTurnsTest::killed)).as("a second call does not wait").isFalse();
    turns.giveBack(2);
    assertThatThrownBy(() -> turns.take(3, DeviceTurnsTest::killed)).hasMessage("killed");
    turns.giveBack(1);
    assertThat(turns.take(3, DeviceTurnsTest::killed)).isTrue();
  }

  @Test
  void aTaskThatIsKilledDoesNotWait() {
    DeviceTurns turns = new DeviceTurns(1, PATIENCE);
    assertThat(turns.take(1, () -> {})).isTrue();
    assertThatThrownBy(() -> turns.take(2, DeviceTurnsTest::killed)).hasMessage("killed");
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> turns.take(2, () -> {})).hasMessageContaining("interrupted");
    assertThat(Thread.interrupted()).isTrue();
  }
}
