package io.weft.spark.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.device.DeviceBlockClient;
import io.weft.shuffle.device.HostReadClient;
import io.weft.shuffle.store.BlockKey;
import java.io.IOException;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;

class RemoteDeviceOutputsTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);
  private static final BlockKey A = new BlockKey(3, 1);
  private static final BlockKey B = new BlockKey(3, 2);
  private static final Map<String, List<BlockKey>> ASKED = Map.of("1", List.of(A), "2", List.of(B));

  /** Executors that received a request, in their order. */
  private final List<String> requests = new CopyOnWriteArrayList<>();

  /** Executor 1 has its output on its GPU, the others do not. */
  private byte[] answer(String executor) {
    requests.add(executor);
    return new byte[] {(byte) (executor.equals("1") ? 1 : 0)};
  }

  private static RemoteDeviceOutputs outputs(
      DeviceBlockClient.Requests requests, Duration timeout) {
    return new RemoteDeviceOutputs(new HostReadClient(requests, "9"), timeout);
  }

  @Test
  void executorsAreAskedOnceForEachOutput() throws Exception {
    try (RemoteDeviceOutputs outputs = outputs((executor, request) -> answer(executor), TIMEOUT)) {
      Map<String, Set<BlockKey>> expected = Map.of("1", Set.of(A), "2", Set.of());
      assertThat(outputs.find(ASKED, () -> {})).isEqualTo(expected);
      assertThat(outputs.find(ASKED, () -> {})).isEqualTo(expected);
      assertThat(requests).containsExactlyInAnyOrder("1", "2");
      outputs.forget(3);
      assertThat(outputs.find(ASKED, () -> {})).isEqualTo(expected);
      assertThat(requests).hasSize(4);
    }
  }

  /** No executor answers before all have been asked. */
  @Test
  void executorsAreAskedAllAtOnce() throws Exception {
    CyclicBarrier all = new CyclicBarrier(2);
    try (RemoteDeviceOutputs outputs =
        outputs(
            (executor, request) -> {
              try {
                int unused = all.await(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
              } catch (BrokenBarrierException | TimeoutException e) {
                throw new IOException(e);
              }
              return answer(executor);
            },
            TIMEOUT)) {
      assertThat(outputs.find(ASKED, () -> {})).containsEntry("1", Set.of(A));
    }
  }

  @Test
  void aFailedRequestIsRepeatedOnce() throws Exception {
    try (RemoteDeviceOutputs outputs =
        outputs(
            (executor, request) -> {
              byte[] answer = answer(executor);
              if (Collections.frequency(requests, "1") == 1 && executor.equals("1")) {
                throw new IOException("a connection that breaks once");
              }
              return answer;
            },
            TIMEOUT)) {
      assertThat(outputs.find(ASKED, () -> {})).containsEntry("1", Set.of(A));
      assertThat(requests).containsExactlyInAnyOrder("1", "1", "2");
    }
  }

  /** A missing answer must not count as "not on the GPU". */
  @Test
  void anExecutorThatNeverAnswersIsNamed() {
    try (RemoteDeviceOutputs outputs =
        outputs(
            (executor, request) -> {
              byte[] answer = answer(executor);
              if (executor.equals("1")) {
                throw new IOException("the executor is unreachable");
              }
              return answer;
            },
            TIMEOUT)) {
      assertThatThrownBy(() -> outputs.find(ASKED, () -> {}))
          .isInstanceOfSatisfying(
              RemoteDeviceOutputs.UnansweredException.class,
              e -> assertThat(e.executor()).isEqualTo("1"))
          .hasMessageContaining("executor 1 does not report which map outputs are on its GPU")
          .hasMessageContaining("the executor is unreachable");
      assertThat(Collections.frequency(requests, "1")).isEqualTo(2);
    }
  }

  @Test
  void waitingEndsAtTheTimeoutAndWhenTheTaskIsKilled() {
    CyclicBarrier never = new CyclicBarrier(9);
    DeviceBlockClient.Requests silent =
        (executor, request) -> {
          try {
            return new byte[never.await()];
          } catch (BrokenBarrierException e) {
            throw new IOException(e);
          }
        };
    try (RemoteDeviceOutputs outputs = outputs(silent, Duration.ofMillis(1))) {
      assertThatThrownBy(() -> outputs.find(Map.of("1", List.of(A)), () -> {}))
          .isInstanceOf(RemoteDeviceOutputs.UnansweredException.class)
          .hasMessageContaining("no answer within");
    }
    try (RemoteDeviceOutputs outputs = outputs(silent, TIMEOUT)) {
      Runnable killed =
          () -> {
            throw new IllegalStateException("the task was killed");
          };
      assertThatThrownBy(() -> outputs.find(ASKED, killed)).hasMessage("the task was killed");
    }
  }
}
