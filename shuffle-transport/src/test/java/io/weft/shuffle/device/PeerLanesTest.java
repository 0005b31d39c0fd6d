package io.weft.shuffle.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.shuffle.store.BlockKey;
import io.weft.transfers.DeviceId;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class PeerLanesTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);
  private static final DeviceBlock BLOCK = new DeviceBlock(new BlockKey(4, 9), 0, 1);

  private final CountDownLatch answer = new CountDownLatch(1);
  private final PeerLanes lanes = new PeerLanes(2, TIMEOUT);

  @AfterEach
  void close() {
    answer.countDown();
    lanes.close();
  }

  private void awaitAnswer() throws InterruptedException {
    assertThat(answer.await(TIMEOUT.toSeconds(), TimeUnit.SECONDS)).isTrue();
  }

  private static void await(Event event) {
    event.await(Deadline.after(TIMEOUT));
  }

  /** Trap 21: there are fewer threads than peers, and one thread waits for a silent peer. */
  @Test
  void aSilentPeerHoldsUpOnlyItself() {
    List<String> ran = Collections.synchronizedList(new ArrayList<>());
    Event silent = lanes.submit("silent", "a request", this::awaitAnswer);
    Event behind = lanes.submit("silent", "a later request", () -> ran.add("behind"));
    List<Event> others = new ArrayList<>();
    for (int peer = 0; peer < 8; peer++) {
      for (int i = 0; i < 5; i++) {
        String work = peer + "-" + i;
        others.add(lanes.submit("peer " + peer, "a request", () -> ran.add(work)));
      }
    }
    others.forEach(PeerLanesTest::await);
    assertThat(silent.state()).isEqualTo(Event.State.RECORDED);
    assertThat(behind.state()).isEqualTo(Event.State.RECORDED);
    for (int peer = 0; peer < 8; peer++) {
      String of = peer + "-";
      assertThat(ran.stream().filter(work -> work.startsWith(of)))
          .containsExactly(of + 0, of + 1, of + 2, of + 3, of + 4);
    }
    answer.countDown();
    await(behind);
    await(silent);
  }

  @Test
  void workThatFailsDoesNotEndTheLane() {
    Event failed =
        lanes.submit(
            "peer",
            "a request",
            () -> {
              throw new OutOfMemoryError("for the test");
            });
    await(lanes.submit("peer", "a later request", () -> {}));
    assertThat(failed.failure().orElseThrow()).hasMessage("for the test");
  }

  @Test
  void closingEndsAllWork() {
    Event running = lanes.submit("silent", "a request", this::awaitAnswer);
    Event waiting = lanes.submit("silent", "a later request", () -> {});
    lanes.close();
    assertThat(running.state()).isEqualTo(Event.State.FAILED);
    assertThat(waiting.failure().orElseThrow())
        .hasMessageContaining("closed before the end of a later request");
    assertThatThrownBy(() -> lanes.submit("peer", "a request", () -> {}))
        .isInstanceOf(IllegalStateException.class);
  }

  /** Executor 1 is stopped; executor 2 answers that it has no such block. */
  @Test
  void fetchesFromOthersGoOnWhileAnExecutorIsStopped() throws Exception {
    CountDownLatch asked = new CountDownLatch(1);
    DeviceBlockClient.Requests requests =
        (executor, request) -> {
          if (executor.equals("1")) {
            asked.countDown();
            awaitAnswer();
          }
          return DeviceBlockMessages.missing(0);
        };
    try (DeviceBlockClient client =
        new DeviceBlockClient(new DeviceCatalog(), requests, null, new DeviceId("0", 1), TIMEOUT)) {
      CompletableFuture<Void> stopped =
          CompletableFuture.runAsync(
              () ->
                  assertThatThrownBy(() -> client.fetch("1", List.of(BLOCK), () -> {}))
                      .isInstanceOf(DeviceFetchException.class));
      assertThat(asked.await(TIMEOUT.toSeconds(), TimeUnit.SECONDS)).isTrue();
      assertThatThrownBy(() -> client.fetch("2", List.of(BLOCK), () -> {}))
          .isInstanceOf(DeviceFetchException.class)
          .hasMessageContaining("executor 2");
      assertThat(stopped).isNotDone();
      answer.countDown();
      assertThat(stopped).succeedsWithin(TIMEOUT);
    }
  }
}
