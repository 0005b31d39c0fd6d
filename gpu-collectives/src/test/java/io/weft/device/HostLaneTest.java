package io.weft.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class HostLaneTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  private final Lane lane = HostLane.open("test", TIMEOUT);

  @AfterEach
  void close() {
    lane.close();
  }

  private static Deadline soon() {
    return Deadline.after(TIMEOUT);
  }

  @Test
  void runsInOrder() {
    List<Integer> seen = new CopyOnWriteArrayList<>();
    for (int i = 0; i < 1000; i++) {
      int number = i;
      lane.submit("work " + i, () -> seen.add(number));
    }
    lane.drain(soon());
    assertThat(seen).isEqualTo(IntStream.range(0, 1000).boxed().toList());
  }

  @Test
  void failedWorkFailsItsEventOnly() {
    Event failing =
        lane.submit(
            "bad",
            () -> {
              throw new java.io.IOException("disk gone");
            });
    Event fine = lane.submit("good", () -> {});
    assertThatThrownBy(() -> failing.await(soon())).hasMessage("bad failed: disk gone");
    fine.await(soon());
  }

  @Test
  void workWaitsForEventsOfOthersAndIsSkippedWhenTheyFail() {
    HostEvent first = new HostEvent("first");
    HostEvent second = new HostEvent("second");
    List<String> seen = new CopyOnWriteArrayList<>();
    Event after = lane.submit("after first", () -> seen.add("after first"), first);
    Event skipped = lane.submit("after second", () -> seen.add("after second"), second);
    assertThat(after.state()).isEqualTo(Event.State.RECORDED);
    first.complete();
    second.fail(new IllegalStateException("peer died"));
    after.await(soon());
    assertThatThrownBy(() -> skipped.await(soon())).hasMessage("after second failed: peer died");
    assertThat(seen).containsExactly("after first");
  }

  @Test
  void closeFailsWhatHasNotStartedAndRefusesMore() throws Exception {
    CountDownLatch started = new CountDownLatch(1);
    CountDownLatch release = new CountDownLatch(1);
    Event running =
        lane.submit(
            "running",
            () -> {
              started.countDown();
              release.await();
            });
    started.await();
    Event waiting = lane.submit("waiting", () -> {});
    Thread closing = new Thread(lane::close);
    closing.start();
    assertThatThrownBy(() -> waiting.await(soon()))
        .hasMessageContaining("lane test was closed before it started waiting");
    release.countDown();
    running.await(soon());
    closing.join();
    assertThatThrownBy(() -> lane.submit("late", () -> {}))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("lane test is closed");
  }
}
