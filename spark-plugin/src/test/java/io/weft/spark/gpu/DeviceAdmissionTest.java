package io.weft.spark.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.spark.gpu.DeviceExchange.DeviceAdmission;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class DeviceAdmissionTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  private static void killed() {
    throw new IllegalStateException("killed");
  }

  @Test
  void aTaskWaitsForTheEndOfAnother() throws Exception {
    DeviceAdmission turns = new DeviceAdmission(2, TIMEOUT);
    assertThat(turns.admit(1, () -> {})).isTrue();
    assertThat(turns.admit(2, () -> {})).isTrue();
    assertThat(turns.admit(2, () -> {})).as("the task is admitted").isFalse();
    CountDownLatch waits = new CountDownLatch(1);
    CompletableFuture<Boolean> third =
        CompletableFuture.supplyAsync(() -> turns.admit(3, waits::countDown));
    assertThat(waits.await(TIMEOUT.toSeconds(), TimeUnit.SECONDS)).isTrue();
    assertThat(third).isNotDone();
    assertThat(turns.admitted()).isEqualTo(2);
    turns.release(1);
    turns.release(1);
    assertThat(third.get(TIMEOUT.toSeconds(), TimeUnit.SECONDS)).isTrue();
    assertThat(turns.admitted()).isEqualTo(2);
  }

  /** The admitted tasks may be waiting for it, as in a barrier stage. */
  @Test
  void aTaskContinuesWithoutAdmissionAfterTheTimeout() {
    DeviceAdmission turns = new DeviceAdmission(1, Duration.ofMillis(1));
    assertThat(turns.admit(1, () -> {})).isTrue();
    assertThat(turns.admit(2, () -> {})).isTrue();
    assertThat(turns.admitted()).isEqualTo(2);
    assertThat(turns.admit(2, DeviceAdmissionTest::killed))
        .as("a second call does not wait")
        .isFalse();
    turns.release(2);
    assertThatThrownBy(() -> turns.admit(3, DeviceAdmissionTest::killed)).hasMessage("killed");
    turns.release(1);
    assertThat(turns.admit(3, DeviceAdmissionTest::killed)).isTrue();
  }

  @Test
  void aTaskThatIsKilledDoesNotWait() {
    DeviceAdmission turns = new DeviceAdmission(1, TIMEOUT);
    assertThat(turns.admit(1, () -> {})).isTrue();
    assertThatThrownBy(() -> turns.admit(2, DeviceAdmissionTest::killed)).hasMessage("killed");
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> turns.admit(2, () -> {})).hasMessageContaining("interrupted");
    assertThat(Thread.interrupted()).isTrue();
  }
}
